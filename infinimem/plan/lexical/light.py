"""Words that carry a conversation but never name its subject, and words that tell noun from verb."""

# The analyser drops articles and pronouns; these are the greetings, praise, light verbs, degrees and
# vague nouns on top of it: frequent everywhere, the subject of nothing.
ENGLISH = """
ability able absolutely actually ago ahead alright already amaze amazed amazing anymore anyone anything anytime
anyway appreciate appreciated appreciating around ask asked asking away awesome awful aww babe back bad bang based
beautiful become became becoming began begin beginning believe best bet better big bit boost both brave bring
bringing brought bro btw bud buddy busy call called calling came can cannot can't care caring catch caught chance
change changed changes chat chatted chatting check checked checking checkout choose chose clear close come comes
coming complete completely congrats congratulation congratulations consider considering continue continued cool
could couple course crazy create created creating curious current currently cute day days deal decide decided deep
def definitely different difference difficult doing done down dude each easy effort either else encourage
encouragement encouraging end ended enjoy enjoyed enjoying enough especially even ever every everybody everyone
everything exactly example excellent except excited excitement exciting experience experiences expect expected
explore exploring express fabulous face fact fam fantastic far fast favorite favourite feel feeling feelings feels
felt fill filled final finally find finding fine finish finished first five folks follow following forever forget
forward found four fresh fun full funny further future gave get gets getting gift give given gives giving glad go
goal goals goes going gone gonna good gosh got gotta gotten grab great grateful guess guy guys had haha hang happen
happened happening happens happy hard haven't hear heard hearing heart heartwarming hello help helped helpful
helping helps here hey hi high highlight hit hold holding honest honestly hope hopefully hopes hoping hour hours how
huge hug hugs idea imagine important impressive impressed incredible incredibly inspire inspired inspiring
inspiration instead interest interested interesting involved issue issues join joined journey joy just keen keep
keeping keeps kept kick kicked kind kinda kinds kindness knew know knowing known large last late lately later laugh
lead learn learned learning least leave leaving left less let lets letting level life light like liked likes liking
line little live lived lives living load long longer look looked looking looks lot lots love loved lovely loves
loving lucky made main major make makes making man manage managed many matter matters may maybe mean meaning
meaningful means meant meet meeting memorable memories memory mention mentioned met might mind minute minutes miss
missed moment moments month months morning most motivate motivated motivating motivation move moved moving much must
natural near nearly need needed needing needs negative never new next nice night none nope normal notice nothing now
often oh ok okay old older once one ones onto open opened opening opinion opportunity option options others
otherwise outcome overall pass passed passion passionate past pay peaceful people perfect perfectly perhaps person
personal pick picked place places plan planned planning plans please plus point positive possible power powerful
pretty prepare preparing probably problem problems process progress promise proud provide pull push pushing put
putting quick quickly quite ran rather reach reached react read ready real realise realised realize realized really
reason recent recently relate relax relaxed relaxing reliable remember remind reminded reminder reminds rest result
results return returned reward rewarding right rock rough run same saw say saying says second see seeing seem seemed
seems seen self send sense sent serious seriously set several share shared sharing shoot short show showed showing
shown shows side sign similar simple simply since sit six slow small smart smile someone something sometimes
somewhere soon sorry sort sound sounded sounds space special spend spent spirit spot stand start started starting
starts stay stayed staying step steps stick still stop stopped strength strong stuff stunning such sup super support
supported supporting supportive suppose supposed sure surprise surprised sweet swamped take taken takes taking talk
talked talking tell telling ten terrific thank thankful thanks that's then there's thing things think thinking
thinks third thought thoughtful thoughts three thrilled time times today together told tomorrow tonight took top
total totally touch tough toward towards tried true truly trust try trying turn turned twice two type types ugh
understand understanding unfortunately unique update upset use used useful using usually value various vibe vibes
view visit wait waiting walk wanna want wanted wanting wants watch watched watching way ways week weekend weekends
weeks well went whatever what's whenever whole wild wise wish wishing without woah won wonder wonderful wondering
word words work worked working works world worried worry worth would wow yay yea yeah year years yep yes yesterday
yet yo yup
absolute account achieve achieved add added adding advance afternoon allow allowed allows although among
amount another apart appear aside available average aware basically bear beat bless blessed blown break bunch calm
celebrate cause certain certainly challenge challenges challenging cheer cheers cherish combine comfort comfortable
comforting common connect connected convey count creative crucial dear dedicated dedication delight delighted
depends deserve deserved despite determination determined develop direction discover discovered drive during
earlier early effect emotional emotions empower empowering energy ensure entire epic escape essential evening
eventually exact excellent extra fall feedback feels fit fits focus focused folk form friendly fulfilling gain
gained general genuine giant glimpse gorgeous grow growing growth guide handle hasn't healthy heads hobby hobbies
holds hooked hugely immense impact improve improved improving include included includes including indeed inner
insane invite invited keep kid killer lift lifted lighten likely list lively look lose losing lost luck luckily mad
magical marvelous mood myself name named neat nervous noticed obviously offer offered offers opinion opportunities
order original outlet outta overwhelm overwhelmed overwhelming own pal part particular parts patience pay peace
perspective perspectives phew piece pleasure plenty pleased possibilities possibility practical prefer present pride
prioritize proper prove pure purpose pursue pursuing push question questions quiet rad random rare reaching recharge
recommend recommended recommendation refreshing regardless regular reflect respect response rid role satisfying
scared scary scene seek series share sheer shot sign single sis slowly smooth solid solution someday somehow soul
spark spread start stress stressed stressful struggle stuck success successful sucks suggest suggestion suggestions
suit task taste tear terms tend test thrilling through tip tips tired tons totally tracks treasure treat tricky
trouble truth upcoming uplifting usual vital warm wear weird welcome whoa wonderfully wondered worthwhile writes
wrong yourself
afford agree agreed aim anywhere appeal approach arrive arrived atmosphere attend attended attending bright cozy
crucial dive dream dreams dreaming eager effective enhance fascinating figure folks gather gathering glow greatly
hectic hopeful impressed include keep lasting lead lined madly nowadays optimistic pop pumped reaction refreshed
rush saved seemingly situation stoked struck sum tackle today's totally unforgettable vary wholesome yesterday's
according aim plus per via
aboard across afterwards against along alongside always amid anybody aside behind below beneath beside besides beyond
bye bummer cheers despite doin during elsewhere etc except fam forth goodbye goin hence however huh inside instead into
loving meanwhile minus mm mmm nearby nevertheless nonetheless nobody nowhere omg oops otherwise ouch outside overall
regarding regardless somebody therefore though throughout thus towards underneath unless unlike upon versus whereas
whether within without worse worst ya
photo photos pic pics picture pictures image images pointed spoke paid pays appreciates blast adorable delicious
captivating heartbreaking humbling amazes lovingly alive key comfy stronger harder smaller bigger larger faster longer
ups bits lack aspect aspects chasing striving admitting flowing
euro euros eur dollar dollars usd percent prozent km kg mg ml gb mb ms cm mm dr mr mrs herr frau prof
due numbers number paid mean means
almost everywhere anyhow askin clinging searching cuz prob probs yall mems waking belong belongs grand ha ah bearable
"""

GERMAN = """
aber alle als also am an auch auf aus bei bin bis bist da das dass dein dem den der des dich die dir doch du durch ein
eine einem einen einer eines er es euch für hat habe haben hier ich ihm ihn ihr im in ist ja kann kein keine man mein
mich mir mit nach nicht noch nur ob oder sehr sein seine sich sie sind so über um und uns unter von vor war waren was
weil wenn wer wie wir wird wo zu zum zur vom damit dann dort eher falls hatte hatten hätte ihre ihren keinen muß nun
solche statt trotz viele während warum wegen welche welcher wäre würde würden
allein allem allen aller alles allerdings andere anderen anfangen angefangen bald beide beim bekommen besonders
besser beste bestimmt bisher bisschen bitte brauche brauchen bringen danach danke dafür daher dabei daran darauf
dazu deshalb eben echt eigentlich einfach einmal endlich erst erste ersten etwas fast finde finden freue freut früh
früher ganz ganze gar geben gefällt gefunden gegen gegeben gehen geht gekommen gemacht genau genug gerade gern gerne
gesagt gestern gibt ging glaube gleich groß große großen gut gute guten halt hallo haben heute heißt hin immer
irgendwie jahr jahre jahren jetzt jemand jeden jeder kam kaum kleine kleinen klar komme kommen kommt könnte lange
lassen leider letzte letzten lieber liegt macht machen mag mal manchmal mehr meine meinen meiner meist mittlerweile
möchte morgen muss müssen nachdem nächste nächsten natürlich nein neue neuen neuer neues nichts nie nochmal oft ohne
paar sache sachen sagt sagen sagte schnell schon schön schöne sehen seit seitdem sehen selbst sicher soll sollen
sollte sonst sowie stark steht stunde stunden super tag tage tagen tatsächlich toll trotzdem tun uhr unbedingt
ungefähr unser unsere unseren viel viele vielen vielleicht voll wahrscheinlich weiß weiter weitere wenig werde
werden wieder will wirklich wissen woche wochen wollen wollte wurde wurden zeit ziemlich zuerst zurück zusammen
zwei zwischen drei vier fünf monat monate montag dienstag mittwoch donnerstag freitag samstag sonntag wochenende
habt seid wart weißt werdet
januar februar märz april mai juni juli august september oktober november dezember abend
"""

CALENDAR = """
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
october november december mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec
pm noon midnight summer winter autumn spring
"""

# A word that follows one of these is a noun or its adjective …
NOUN_AFTER = frozenset(
    """
    a an the my your his her its our their this that these those some any each every no another more of for with
    from about in on at into by and or than 's new own first last der die das den dem des ein eine einen einem einer
    mein meine meinen meinem meiner dein deine sein seine seinen seinem seiner ihr ihre ihren ihrem unser unsere im
    am zum zur vom beim mit für von aus bei nach kein keine keinen
    """.split()
)
# … and one that follows these, a verb.
VERB_AFTER = frozenset(
    """
    i you he she it we they who to will would can could should may might must don't didn't doesn't can't won't
    wouldn't couldn't never i'll you'll we'll they'll i'd you'd we'd they'd gonna wanna let's not please ich du er
    sie wir ihr es man zu
    """.split()
)

# … and what stands right before one of these is a verb or an adverb: `teaches me`, `carries a`.
VERB_BEFORE = frozenset("the a an my your his her our their me us him them it".split())

# A full stop after one of these ends no sentence.
ABBREVIATIONS = frozenset("dr mr mrs ms prof st hr fr nr bzw ca vs vgl e.g i.e z.b d.h u.a".split())

GERMAN_SIGNS = frozenset(
    """
    der die das den dem und ist nicht ein eine einen mit für auf ich wir hat habe haben von zu im am bei sind war
    wird nach wie aber auch noch mein meine sie er es
    """.split()
)
ENGLISH_SIGNS = frozenset(
    """
    the a an and is not with for on i we has have of to in at are was will but also my she he it that this you
    """.split()
)

# Chinese and Japanese function characters: a subject's name does not run across them.
CJK_PARTICLES = frozenset(
    "的了在是我你他她它们們和与與就都也很不有这這那吗嗎呢吧啊把被给給让讓从從到要去来來说說为為对對上下个個一"
    "はがをにへとでのもやかねよさしてたるいうくすなりれこそあ"
)
