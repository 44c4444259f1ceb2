"use strict";
(() => {
  // Data is only ever put on the page as text: never as markup, style or script.
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const { items, annotators, labels } = read("data");
  const charts = read("charts");
  const percent = (x) => `${Math.round(100 * x)}%`;
  const fixed = (x, digits = 2) => (x == null ? "–" : x.toFixed(digits));
  const count = (x) => x.toLocaleString("en");
  const kinds = { few: "too few", conflict: "conflict", settled: "settled" };

  function el(name, attributes, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value != null && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child != null));
    return node;
  }
  const text = (value) => el("bdi", { dir: "auto" }, value);

  // A table with search, filters, sorting and pages. Only its body is drawn anew, so focus stays.
  function table(root, { caption, unit, columns, rows, sort, filters, words, detail, size = 25 }) {
    if (!root) return;
    let kept = rows, page = 0, by = sort, down = true, only = null, sought = "";
    const id = root.id;
    const status = el("p", { role: "status" });
    const body = el("tbody");
    const heads = columns.map((column) => {
      const press = el("button", { type: "button", title: column.help }, column.head);
      press.addEventListener("click", () => {
        down = by === column ? !down : column.number === true;
        by = column; page = 0; draw();
      });
      return el("th", { scope: "col", class: column.number ? "n" : null }, press);
    });
    const back = el("button", { type: "button" }, "Previous");
    const on = el("button", { type: "button" }, "Next");
    const where = el("span");
    back.addEventListener("click", () => { page -= 1; draw(); });
    on.addEventListener("click", () => { page += 1; draw(); });

    const search = el("input", { type: "search", id: `${id}-search`, autocomplete: "off" });
    search.addEventListener("input", () => { sought = search.value.toLowerCase(); page = 0; draw(); });
    const controls = el("div", { class: "controls" },
      el("label", { class: "search", for: `${id}-search` }, `Search ${unit}`, search));
    if (filters) {
      const set = el("fieldset", null, el("legend", null, "Show"));
      for (const [name, test] of filters) {
        const radio = el("input", { type: "radio", name: `${id}-only`, checked: test === null });
        radio.addEventListener("change", () => { only = test; page = 0; draw(); });
        const n = test ? rows.filter(test).length : rows.length;
        set.append(el("label", { class: "chip" }, radio, el("span", null, `${name} (${count(n)})`)));
      }
      controls.append(set);
    }
    const grid = el("table", null, el("caption", null, caption),
      el("thead", null, el("tr", null, ...heads)), body);
    root.append(controls, status,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table of ${unit}` }, grid),
      el("div", { class: "pages" }, back, where, on));

    function line(row, n) {
      const cells = columns.map((column, c) => {
        const inside = column.cell(row);
        const first = c === 0;
        return el(first ? "th" : "td",
          { scope: first ? "row" : null, class: column.number ? "n" : first ? "name" : column.wide ? "wide" : null }, inside);
      });
      const tr = el("tr", null, ...cells);
      if (!detail) return [tr];
      const below = el("tr", { class: "detail", id: `${id}-more-${n}`, hidden: true },
        el("td", { colspan: columns.length }));
      const name = cells[0].firstChild;
      const press = el("button", {
        type: "button", class: "more", "aria-expanded": "false", "aria-controls": below.id }, name);
      press.addEventListener("click", () => {
        const open = below.hidden;
        if (open && !below.firstChild.hasChildNodes()) below.firstChild.append(...detail(row));
        below.hidden = !open;
        press.setAttribute("aria-expanded", String(open));
      });
      cells[0].append(press);
      return [tr, below];
    }

    function draw() {
      kept = rows.filter((row) => (!only || only(row)) && (!sought || words(row).includes(sought)));
      const value = by.value;
      const sign = down ? -1 : 1;
      // What is unknown comes last either way; equal ones stay as they were.
      kept = kept.map((row, n) => [value(row), n, row]).sort(([a, i], [b, j]) => {
        if (a == null || b == null) return (a == null) - (b == null) || i - j;
        const order = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
        return sign * order || i - j;
      }).map(([, , row]) => row);
      const pages = Math.max(1, Math.ceil(kept.length / size));
      page = Math.min(Math.max(page, 0), pages - 1);
      const from = page * size;
      const some = kept.slice(from, from + size);
      body.replaceChildren(...some.flatMap((row, n) => line(row, from + n)));
      if (!some.length) {
        body.append(el("tr", null, el("td", { colspan: columns.length }, `No ${unit} match.`)));
      }
      columns.forEach((column, c) => {
        heads[c].setAttribute("aria-sort", by !== column ? "none" : down ? "descending" : "ascending");
      });
      back.disabled = page === 0;
      on.disabled = page >= pages - 1;
      where.textContent = `Page ${count(page + 1)} of ${count(pages)}`;
      status.textContent = kept.length
        ? `${count(from + 1)} to ${count(from + some.length)} of ${count(kept.length)} ${unit}` : `No ${unit}`;
    }
    draw();
  }

  // Few labels have a colour each; of many, the first three of an item have one.
  const few = labels.length <= 7;
  const colour = (k, rank) => (few ? `var(--label-${k})` : rank < 3 ? `var(--label-${rank})` : "var(--rest)");

  function beliefs(row) {
    const said = row.belief.map(([k, b]) => `${labels[k]} ${percent(b)}`);
    const bar = el("div", { class: "belief", role: "img",
      "aria-label": [...said, `unknown ${percent(row.uncertainty)}`].join(", ") });
    bar.title = bar.getAttribute("aria-label");
    const all = 1 - row.uncertainty;
    let sum = 0;
    row.belief.forEach(([k, b], rank) => {
      const part = el("i");
      part.style.width = `${100 * b}%`;
      part.style.background = colour(k, rank);
      sum += b;
      bar.append(part);
    });
    if (all - sum > 0.004) {
      const rest = el("i");
      rest.style.width = `${100 * (all - sum)}%`;
      rest.style.background = "var(--rest)";
      bar.append(rest);
    }
    bar.append(el("i", { class: "gap" }));
    return bar;
  }

  const whose = (vote) => items.annotators[vote[0]];
  const named = items.named;

  function explain(row) {
    const head = ["Said", items.stated && "Confidence", "Weight", named ? "Without them" : "Without it"].filter(Boolean);
    if (named) head.unshift("Annotator");
    const lines = row.annotations.map((vote) => {
      const [, label, share, stated, weight, leader, probability] = vote;
      const changes = leader !== row.label;
      const cells = [
        el(named ? "td" : "th", { scope: named ? null : "row" }, text(labels[label]), share < 1 ? ` ${percent(share)}` : ""),
        items.stated ? el("td", { class: "n" }, stated == null ? "–" : String(stated)) : null,
        el("td", { class: "n" }, fixed(weight)),
        el("td", changes ? { class: "changes" } : null, changes ? "would be " : "still ", text(labels[leader]), `, ${percent(probability)}`),
      ];
      if (named) cells.unshift(el("th", { scope: "row" }, text(whose(vote))));
      return el("tr", null, ...cells.filter(Boolean));
    });
    const hidden = row.votes - row.annotations.length;
    const about = row.votes
      ? `The likeliest label is ${labels[row.label]}, ${percent(row.probability)}. Weights are pseudo-counts: the prior has 2, spread over all labels.`
      : "Nobody annotated this item.";
    const told = el("p", { dir: "auto", class: "note" }, about + (hidden > 0 ? ` ${count(hidden)} lighter annotations are not listed.` : ""));
    if (!row.votes) return [told];
    return [told, el("table", null,
      el("caption", null, `Annotations of this item, heaviest first`),
      el("thead", null, el("tr", null, ...head.map((h) =>
        el("th", { scope: "col", class: h === "Confidence" || h === "Weight" ? "n" : null }, h)))),
      el("tbody", null, ...lines))];
  }

  const hangs = (row) => row.annotations.some((vote) => vote[5] !== row.label);
  const by = (head, key, digits, help) => ({
    head, help, number: true, value: (row) => row[key],
    cell: (row) => (digits === 0 ? count(row[key]) : fixed(row[key], digits)),
  });
  const itemColumns = [
    { head: "Item", value: (row) => row.item, cell: (row) => text(row.item) },
    { head: "Likeliest label", value: (row) => labels[row.label], cell: (row) => text(labels[row.label]) },
    { head: "Probability", number: true, value: (row) => row.probability, cell: (row) => percent(row.probability) },
    { head: "Opinion", wide: true, value: (row) => row.belief.length ? row.belief[0][1] : 0, cell: beliefs },
    by("Uncertainty", "uncertainty", 3), by("Conflict", "conflict", 2), by("Annotations", "votes", 0),
    { head: "State", value: (row) => kinds[row.why], cell: (row) => el("span", { class: `tag ${row.why}` }, kinds[row.why]) },
  ];
  table(document.getElementById("items-table"), {
    caption: "Choose an item to see its annotations and what each weighs.",
    unit: "items", columns: itemColumns, rows: items.rows, sort: itemColumns[4],
    words: (row) => `${row.item} ${labels[row.label]}`.toLowerCase(), detail: explain,
    filters: [["All", null], ["Too few opinions", (row) => row.why === "few"],
      ["Conflict", (row) => row.why === "conflict"], ["Hangs on one annotation", hangs],
      ["Settled", (row) => row.why === "settled"]],
  });

  const between = (x, low, high, digits) => el("span", null, fixed(x, digits),
    low == null ? null : el("span", { class: "range" }, `${fixed(low, digits)} to ${fixed(high, digits)}`));
  const known = (key) => annotators.some((row) => row[key] != null);
  const peopleColumns = [
    { head: "Annotator", value: (row) => row.annotator, cell: (row) => text(row.annotator) },
    by("Annotations", "annotations", 0),
    known("reliability") && { head: "Reliability", number: true, value: (row) => row.reliability,
      cell: (row) => between(row.reliability, row.reliability_low, row.reliability_high, 3) },
    known("agreement") && { head: "Agreement", number: true, value: (row) => row.agreement,
      cell: (row) => between(row.agreement, row.agreement_low, row.agreement_high, 2) },
    known("kappa") && by("Kappa", "kappa", 2),
    known("stated") && by("Stated", "stated", 2), known("earned") && by("Earned", "earned", 2),
    known("said") && { head: "Most confused", wide: true, value: (row) => row.confused_share,
      cell: (row) => row.said == null ? "–" : el("span", null, "says ", text(row.said), ", peers ", text(row.peers_say), ` (${percent(row.confused_share)})`) },
    by("Labels changed", "items_changed", 0),
  ].filter(Boolean);
  table(document.getElementById("annotators-table"), {
    caption: "95% intervals stand below.", unit: "annotators", columns: peopleColumns,
    rows: annotators, sort: peopleColumns.find((c) => c.head === "Reliability") || peopleColumns[1], words: (row) => row.annotator.toLowerCase(),
  });

  for (const swatch of document.querySelectorAll("[data-colour]")) {
    swatch.style.background = `var(--${swatch.dataset.colour})`;
  }

  // Charts: what the pointer is on is told as text.
  const tip = document.getElementById("tip");
  function hover(_, event, item, value) {
    if (value == null || value === "") { tip.hidden = true; return; }
    tip.textContent = typeof value === "object"
      ? Object.entries(value).map(([key, said]) => `${key}: ${said}`).join("\n") : String(value);
    tip.hidden = false;
    const right = event.clientX + 14 + tip.offsetWidth > innerWidth;
    tip.style.left = `${Math.max(4, right ? event.clientX - tip.offsetWidth - 10 : event.clientX + 14)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 4)}px`;
  }
  const drawn = Object.entries(charts).map(([name, spec]) => {
    // Its place has a name; what is inside would be read out mark by mark.
    const inside = el("div", { "aria-hidden": "true" });
    document.getElementById(`chart-${name}`).append(inside);
    return vegaEmbed(inside, spec, {
      mode: "vega-lite", ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: hover,
    });
  });
  Promise.all(drawn).then(() => { document.documentElement.dataset.ready = "yes"; });
})();
