// Runs before the page is drawn, so that it never flashes in the wrong colours.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("infinimem-theme");
  } catch { /* a browser that keeps nothing */ }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
