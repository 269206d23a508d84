// A field above long tables that keeps the rows with all of its words: support.md has hundreds of model types.
const LONG = 40;

function filterField(tables) {
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "Filter: llama, vision, sliding, refused ...";
  field.setAttribute("aria-label", "Filter the rows of all tables");
  field.className = "filter";
  const count = document.createElement("output");
  count.className = "filter-count";
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
  const texts = rows.map((row) => row.textContent.toLowerCase());
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      shown += row.hidden ? 0 : 1;
    });
    count.textContent = words.length > 0 ? `${shown} of ${rows.length} rows` : "";
  });
  document.querySelector("article h2").before(field, count);
}

document.addEventListener("DOMContentLoaded", () => {
  const tables = [...document.querySelectorAll("article table")];
  const rows = tables.reduce((sum, table) => sum + (table.tBodies[0]?.rows.length ?? 0), 0);
  if (rows > LONG && tables.some((table) => table.tBodies[0]?.rows.length > LONG)) {
    filterField(tables.filter((table) => table.tBodies[0]));
  }
});
