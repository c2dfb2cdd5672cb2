// What the theme adds to a page after loading: buttons to copy are no landmarks, and what scrolls can be reached by keyboard.
const mend = () => {
  for (const bar of document.querySelectorAll("nav.md-code__nav:not([role])")) bar.setAttribute("role", "presentation");
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    wide.setAttribute("tabindex", "0");
    wide.setAttribute("role", "group");
    wide.setAttribute("aria-label", "Table");
  }
};
new MutationObserver(mend).observe(document.documentElement, { childList: true, subtree: true });
mend();
