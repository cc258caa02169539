"""How the pages are built: `./dev docs` (Sphinx with MyST, warnings are errors)."""

project = "infinimem"
extensions = ["myst_parser"]  # Markdown
source_suffix = {".md": "markdown"}
html_theme = "alabaster"
html_theme_options = {
    "description": "Memory as a folder of plain text",
    "fixed_sidebar": True,
    "page_width": "1240px",
    "body_max_width": "960px",
}
html_show_copyright = False
exclude_patterns = ["_build"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]
