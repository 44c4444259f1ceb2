"use strict";
(() => {
  // Data is only ever put on the page as text: never as markup, style or script.
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  // Labels as they are, and shorter where there is little room.
  const { items, annotators, labels, short, leading } = read("data");
  const charts = read("charts");
  // Numbers are rounded as Python does it: what lies halfway goes to the even digit.
  function even(x) {
    const low = Math.floor(x), rest = x - low;
    return rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low;
  }
  const percent = (x) => `${even(100 * x)}%`;
  function fixed(x, digits = 2) {
    if (x == null) return "–";
    // Only multiples of a small power of two can lie exactly halfway.
    return (Number.isInteger(4096 * x) ? even(x * 10 ** digits) / 10 ** digits : x).toFixed(digits);
  }
  const count = (x) => x.toLocaleString("en");
  // What to make of annotators, the worst first, and the colour of each.
  const verdicts = { "against the crowd": "conflict", "at chance": "conflict", "look at": "few", "too few to tell": "unknown", "fine": "settled" };
  const kinds = { few: "too few", conflict: "conflict", settled: "settled" };
  const states = { few: "open for want of opinions", conflict: "in conflict", settled: "settled" };

  function el(name, attributes, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value != null && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child != null));
    return node;
  }
  const text = (value) => el("bdi", { dir: "auto" }, value);
  // A label that is a number is not to run into a share: it has its own style, and a colon behind.
  const label = (name) => el("b", { class: "label" }, text(name));
  const brief = (k) => el("b", { class: "label" }, el("bdi", { dir: "auto", title: short[k] === labels[k] ? null : labels[k] }, short[k]));
  const quoted = (k) => `“${labels[k]}”`;

  // A spreadsheet would take text that begins like this for a formula.
  const cell = (x) => (typeof x === "string" && /^[=+\-@\t\r]/.test(x) ? `'${x}` : x ?? "");
  function save(name, heads, lines) {
    const quoted = [heads, ...lines].map((line) =>
      line.map((x) => `"${String(cell(x)).replaceAll('"', '""')}"`).join(","));
    const link = el("a", { download: name });
    // The mark at the beginning tells Excel that it is UTF-8.
    link.href = URL.createObjectURL(new Blob([`\ufeff${quoted.join("\r\n")}\r\n`], { type: "text/csv" }));
    link.click();
    URL.revokeObjectURL(link.href);
  }

  // A table with search, filters, sorting, pages and export. Only its body is drawn anew, so focus
  // stays. Links to a row find it, whatever is shown now.
  function table(root, { caption, unit, columns, rows, sort, up, filters = [], words, detail, csv, size = 25 }) {
    if (!root) return null;
    let kept = rows, page = 0, by = sort, down = !up, only = null, sought = "";
    const id = root.id;
    const place = new Map(rows.map((row, n) => [row, n]));
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
    const keep = el("button", { type: "button", class: "save" }, "Save as CSV");
    const where = el("span");
    back.addEventListener("click", () => { page -= 1; draw(); });
    on.addEventListener("click", () => { page += 1; draw(); });
    keep.addEventListener("click", () => save(`${unit}.csv`, csv.map(([head]) => head),
      kept.map((row) => csv.map(([, value]) => value(row)))));

    const search = el("input", { type: "search", id: `${id}-search`, autocomplete: "off" });
    search.addEventListener("input", () => { sought = search.value.toLowerCase(); page = 0; draw(); });
    const controls = el("div", { class: "controls" },
      el("label", { class: "search", for: `${id}-search` }, `Search ${unit}`, search));
    const chips = new Map();
    if (filters.length) {
      const set = el("fieldset", null, el("legend", null, "Show"));
      for (const [key, name, test] of filters) {
        const radio = el("input", { type: "radio", name: `${id}-only`, checked: test === null });
        chips.set(key, [radio, test]);
        radio.addEventListener("change", () => { only = test; page = 0; draw(); });
        const n = test ? rows.filter(test).length : rows.length;
        set.append(el("label", { class: "chip" }, radio, el("span", null, `${name} (${count(n)})`)));
      }
      controls.append(set);
    }
    const grid = el("table", { class: "cards" }, el("caption", null, caption),
      el("thead", null, el("tr", null, ...heads)), body);
    root.append(controls, status,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table of ${unit}` }, grid),
      el("div", { class: "pages" }, back, where, on, keep));

    function line(row) {
      const n = place.get(row);
      const cells = columns.map((column, c) => {
        const first = c === 0;
        return el(first ? "th" : "td", { scope: first ? "row" : null, "data-head": first ? null : column.head,
          class: column.number ? "n" : first ? "name" : column.wide ? "wide" : null }, column.cell(row));
      });
      const tr = el("tr", null, ...cells);
      const below = el("tr", { class: "detail", id: `${id}-more-${n}`, hidden: true },
        el("td", { colspan: columns.length }));
      const press = el("button", {
        type: "button", class: "more", "aria-expanded": "false", "aria-controls": below.id }, cells[0].firstChild);
      press.addEventListener("click", () => {
        const open = below.hidden;
        if (open && !below.firstChild.hasChildNodes()) below.firstChild.append(...detail(row).filter(Boolean));
        below.hidden = !open;
        press.setAttribute("aria-expanded", String(open));
      });
      cells[0].prepend(press);
      if (columns[0].below) cells[0].append(columns[0].below(row) ?? "");
      return [tr, below];
    }

    function draw() {
      kept = rows.filter((row) => (!only || only(row)) && (!sought || words(row).toLowerCase().includes(sought)));
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
      body.replaceChildren(...some.flatMap(line));
      if (!some.length) {
        body.append(el("tr", null, el("td", { colspan: columns.length }, `No ${unit} match.`)));
      }
      columns.forEach((column, c) => {
        heads[c].setAttribute("aria-sort", by !== column ? "none" : down ? "descending" : "ascending");
      });
      back.disabled = page === 0;
      on.disabled = page >= pages - 1;
      keep.disabled = !kept.length;
      where.textContent = `Page ${count(page + 1)} of ${count(pages)}`;
      status.textContent = kept.length
        ? `${count(from + 1)} to ${count(from + some.length)} of ${count(kept.length)} ${kept.length === 1 ? unit.slice(0, -1) : unit}` : `No ${unit}`;
    }
    function show(key) {
      const [radio, test] = chips.get(key) || [];
      if (radio) radio.checked = true;
      only = test ?? null; sought = search.value = ""; page = 0; draw();
    }
    function reveal(n) {
      if (!rows[n]) return;
      show("all");
      page = Math.floor(kept.indexOf(rows[n]) / size); draw();
      const press = root.querySelector(`[aria-controls="${id}-more-${n}"]`);
      press.click(); press.focus({ preventScroll: true });
      press.scrollIntoView({ block: "center" });
    }
    draw();
    return { show: (key) => { show(key); root.scrollIntoView(); }, reveal };
  }

  // Few labels have a colour each; of many, the first three of an item have one.
  const few = labels.length <= 7;
  const colour = (k, rank) => (few ? `var(--label-${k})` : rank < 3 ? `var(--label-${rank})` : "var(--rest)");

  function beliefs(row) {
    const said = row.belief.map(([k, b]) => `${labels[k]}: ${percent(b)}`);
    const bar = el("div", { class: "belief", role: "img",
      "aria-label": [...said, `unknown: ${percent(row.uncertainty)}`].join("; ") });
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

  const named = items.named;
  const listed = new Map(annotators.map((row, n) => [row.annotator, n]));
  const toItem = (n, name) => el("a", { href: `#item-${n}` }, text(name));
  const person = (name) => (listed.has(name) ? el("a", { href: `#annotator-${listed.get(name)}` }, text(name)) : text(name));
  // On a narrow screen each row is a card; a matrix scrolls instead.
  function small(caption, heads, lines, { matrix = false } = {}) {
    lines.forEach((tr) => [...tr.children].forEach((part, c) => part.setAttribute("data-head", heads[c][0])));
    return el("table", { class: matrix ? null : "cards" }, el("caption", null, caption),
      el("thead", null, el("tr", null, ...heads.map(([head, n]) => el("th", { scope: "col", class: n ? "n" : null }, head)))),
      el("tbody", null, ...lines));
  }

  // Fields that came with the items: pictures where they are addresses of such, else text.
  function field(name, value) {
    if (value == null) return null;
    const picture = items.pictures.includes(name)
      ? el("img", { src: value, alt: `${name} of this item`, loading: "lazy", referrerpolicy: "no-referrer" }) : null;
    return el("div", { class: "field" }, el("span", { class: "note" }, name), picture || el("p", { dir: "auto" }, value));
  }

  function about(row) {
    if (!row.votes) return "Nobody annotated this item.";
    const state = ` It is ${states[row.why]}: ${row.reason}.`;
    const differ = row.label !== row.people_say
      ? ` People would rather say ${quoted(row.people_say)}; those who say ${quoted(row.label)} are right more often, or ${quoted(row.people_say)} is often said where ${quoted(row.label)} is true.` : "";
    const gold = row.gold == null ? "" : row.gold === row.label ? " The gold label is the same." : ` The gold label is ${quoted(row.gold)}.`;
    return `${leading.is_said} ${quoted(row.label)}, ${percent(row.probability)}.${differ}${gold}${state}`;
  }

  function explain(row) {
    const fields = [row.text == null ? null : field(items.text, row.text), ...items.fields.map((name, f) => field(name, row.fields[f]))];
    const head = [["Said"], items.stated && ["Confidence", true], ["Weight", true], [`${leading.truth ? "True" : leading.head} without ${named ? "them" : "it"}`]].filter(Boolean);
    if (named) head.unshift(["Annotator"]);
    const lines = row.annotations.map(([who, given, share, stated, weight, leader, probability]) => {
      const changes = leader !== row.label;
      const cells = [
        el(named ? "td" : "th", { scope: named ? null : "row" }, el("span", null, label(labels[given]), share < 1 ? `: ${percent(share)}` : "")),
        items.stated ? el("td", { class: "n" }, stated == null ? "–" : String(stated)) : null,
        el("td", { class: "n" }, fixed(weight)),
        el("td", changes ? { class: "changes" } : null, el("span", null, changes ? "would be " : "still ", label(labels[leader]), `: ${percent(probability)}`)),
      ];
      if (named) cells.unshift(el("th", { scope: "row" }, person(items.annotators[who])));
      return el("tr", null, ...cells.filter(Boolean));
    });
    const hidden = row.votes - row.annotations.length;
    const told = el("p", { dir: "auto", class: "note" }, about(row)
      + (row.votes ? " Weights tell how much a vote counts for what people would say; not knowing counts 1." : "")
      + (hidden > 0 ? ` ${count(hidden)} lighter annotations are not listed.` : ""));
    return [...fields, told, row.votes ? small("Annotations of this item, heaviest first", head, lines) : null];
  }

  const hangs = (row) => row.annotations.some((vote) => vote[5] !== row.label);
  const by = (head, key, digits, help) => ({
    head, help, number: true, value: (row) => row[key],
    cell: (row) => (digits === 0 ? count(row[key]) : fixed(row[key], digits)),
  });
  const likely = (row) => el("span", null, label(labels[row.label]), `: ${percent(row.probability)}`,
    row.label === row.people_say || !row.votes ? null : el("small", null, "people say ", label(labels[row.people_say])),
    row.gold == null || row.gold === row.label ? null : el("small", { class: "changes" }, "gold ", label(labels[row.gold])));
  const itemColumns = [
    { head: "Item", value: (row) => row.item, cell: (row) => text(row.item),
      below: (row) => row.text == null ? null : el("p", { class: "snippet", dir: "auto" }, row.text) },
    { head: leading.head, help: `${leading.truth ? "The label that is likeliest right" : "What the next person would say most probably"}, and how probable that is`, number: false,
      value: (row) => row.probability, cell: likely },
    { head: "People would say", help: "How the next votes would be spread; the hatched part is doubt", wide: true,
      value: (row) => labels[row.people_say], cell: beliefs },
    by("Doubt", "uncertainty", 3, "How much is not known of what people would say"),
    by("Conflict", "conflict", 2, "How far votes contradict each other; 0 where all say the same"),
    by("Annotations", "votes", 0),
    { head: "State", value: (row) => kinds[row.why], cell: (row) => el("span", { class: `tag ${row.why}`, title: row.reason }, kinds[row.why]) },
  ];
  const scored = items.rows.some((row) => row.gold != null);
  const tables = {};
  // A page of pairs has neither of the two tables.
  if (document.getElementById("items-table")) tables.item = table(document.getElementById("items-table"), {
    caption: "Choose an item to see its annotations and what each weighs.",
    unit: "items", columns: itemColumns, rows: items.rows, sort: itemColumns[3],
    words: (row) => `${row.item} ${labels[row.label]} ${row.text ?? ""}`, detail: explain,
    filters: [["all", "All", null], ["few", "Too few opinions", (row) => row.why === "few"],
      ["conflict", "Conflict", (row) => row.why === "conflict"], ["hangs", "Hangs on one annotation", hangs],
      ...(leading.truth ? [["differ", "True is not what people say", (row) => row.votes > 0 && row.label !== row.people_say]] : []),
      ...(scored ? [["wrong", "Not the gold label", (row) => row.gold != null && row.gold !== row.label]] : []),
      ["settled", "Settled", (row) => row.why === "settled"]],
    csv: [["item", (row) => row.item], ...(items.text ? [[items.text, (row) => row.text]] : []),
      ...items.fields.map((name, f) => [name, (row) => row.fields[f]]),
      [leading.truth ? "likely_true" : "likeliest_vote", (row) => labels[row.label]], ["probability", (row) => row.probability],
      ["people_would_say", (row) => labels[row.people_say]], ["doubt", (row) => row.uncertainty],
      ["conflict", (row) => row.conflict], ["annotations", (row) => row.votes], ["state", (row) => kinds[row.why]], ["why", (row) => row.reason],
      ...(scored ? [["gold", (row) => labels[row.gold]]] : [])],
  });

  const between = (x, low, high, digits) => el("span", null, fixed(x, digits),
    low == null ? null : el("span", { class: "range" }, `${fixed(low, digits)} to ${fixed(high, digits)}`));
  const known = (key) => annotators.some((row) => row[key] != null);

  // A share as a bar, and its interval as a line; the numbers stand beside it.
  function meter({ right, right_low, right_high }) {
    const bar = el("i"), line = el("b");
    bar.style.width = `${100 * right}%`;
    line.style.left = `${100 * right_low}%`;
    line.style.width = `${100 * (right_high - right_low)}%`;
    return el("div", { class: "meter", "aria-hidden": "true" }, bar, line);
  }

  const rightly = leading.truth ? "Right" : "With the likeliest vote";
  // One annotator: what they say where a label is true, and where they differ.
  function portrait(row) {
    const own = row.confusion;
    const matrix = own && small("What they say (columns) where a label is likely true (rows); with few annotations it is close to what everybody says",
      [["True"], ...own.labels.map((k) => [short[k], true])],
      own.share.map((line, i) => el("tr", null, el("th", { scope: "row" }, brief(own.labels[i])),
        ...line.map((x, j) => el("td", { class: own.labels[i] === own.labels[j] ? "n same" : x >= 0.2 ? "n changes" : "n" }, percent(x))))), { matrix: true });
    const differ = row.differs.length ? small(`Where they differ most from what is ${leading.truth ? "likely true" : "the likeliest vote"}`, [["Item"], ["Said"], [leading.head]],
      row.differs.map(([at, name, said, likely, probability]) => el("tr", null,
        el("th", { scope: "row" }, at == null ? text(name) : toItem(at, name)),
        el("td", null, brief(said)), el("td", null, el("span", null, brief(likely), `: ${percent(probability)}`))))) : null;
    const over = row.trend.length ? small(`Over time: how often they said what is ${leading.truth ? "likeliest true" : "the likeliest vote"} by the others`, [["When"], ["Annotations", true], [rightly, true], [""]],
      row.trend.map((part) => el("tr", null, el("th", { scope: "row", class: "when" }, part.begin === part.end ? part.begin : `${part.begin} to ${part.end}`),
        el("td", { class: "n" }, count(part.annotations)),
        el("td", { class: "n" }, el("span", null, percent(part.right), el("span", { class: "range" }, `${percent(part.right_low)} to ${percent(part.right_high)}`))),
        el("td", null, meter(part))))) : null;
    const why = row.reason ? el("p", { dir: "auto" }, `${row.verdict}: ${row.reason}.`) : null;
    const nothing = own || differ || why || over ? null : el("p", { class: "note" }, "Nothing sets them apart.");
    const framed = (part) => part && el("div", { class: "scroll" }, part);
    // A matrix of many labels has a line of its own.
    const large = own && own.labels.length > 5;
    const beside = [large ? null : matrix, differ, over].filter(Boolean);
    return [why, large ? framed(matrix) : null, beside.length ? el("div", { class: "two" }, ...beside.map(framed)) : null, nothing];
  }
  const peopleColumns = [
    { head: "Annotator", value: (row) => row.annotator, cell: (row) => text(row.annotator) },
    known("verdict") && { head: "Verdict", value: (row) => Object.keys(verdicts).indexOf(row.verdict),
      cell: (row) => el("span", { class: `tag ${verdicts[row.verdict]}` }, row.verdict) },
    by("Annotations", "annotations", 0),
    known("above_chance") && { head: "Above chance", help: `How often ${leading.right}: 0 is guessing, 1 is always; 95% interval below`, number: true,
      value: (row) => row.above_chance, cell: (row) => between(row.above_chance, row.above_chance_low, row.above_chance_high, 2) },
    known("accuracy") && { head: rightly, help: `How often they are ${leading.right}${leading.truth ? ", by what is likely true" : ""}`, number: true,
      value: (row) => row.accuracy, cell: (row) => (row.accuracy == null ? "–" : percent(row.accuracy)) },
    known("reliability") && by("Reliability", "reliability", 3, "As it came with the data"),
    known("agreement") && { head: "Agreement", help: "How often a peer says the same", number: true, value: (row) => row.agreement,
      cell: (row) => between(row.agreement, row.agreement_low, row.agreement_high, 2) },
    known("stated") && by("Stated", "stated", 2, "Mean confidence"), known("earned") && by("Earned", "earned", 2, "Agreement beyond chance with peers"),
    known("said") && { head: "Most confused", wide: true, value: (row) => row.confused_share,
      cell: (row) => row.said == null ? "–" : el("span", null, "says ", label(row.said), ", peers ", label(row.peers_say), ` (${percent(row.confused_share)})`) },
    by("Labels changed", "items_changed", 0, `Items whose ${leading.truth ? "likeliest true" : "likeliest"} label would be another without them`),
  ].filter(Boolean);
  const column = (head) => peopleColumns.find((c) => c.head === head);
  if (document.getElementById("annotators-table")) tables.annotator = table(document.getElementById("annotators-table"), {
    caption: "Choose an annotator to see what they confuse and where they differ. 95% intervals stand below.",
    unit: "annotators", columns: peopleColumns, rows: annotators, detail: portrait, words: (row) => row.annotator,
    sort: column("Verdict") || column("Above chance") || column("Reliability") || column("Annotations"),
    up: known("above_chance") || known("reliability"),
    filters: known("verdict") ? [["all", "All", null],
      ["look", "To look at", (row) => ["conflict", "few"].includes(verdicts[row.verdict])]] : [],
    csv: [["annotator", (row) => row.annotator], ...["verdict", "reason", "annotations", "shared_items", "above_chance", "above_chance_low",
      "above_chance_high", "accuracy", "reliability", "agreement", "kappa", "stated", "earned", "said", "peers_say", "items_changed"]
      .filter(known).map((key) => [key, (row) => row[key]])],
  });

  // Links to an item, an annotator, or some of either.
  function go() {
    const [, what, where] = /^#(item|annotator)s?-(\w+)$/.exec(location.hash) || [];
    if (!tables[what]) return;
    if (/^\d+$/.test(where)) tables[what].reveal(Number(where));
    else if (where !== "table" && where !== "title") tables[what].show(where);
  }
  addEventListener("hashchange", go);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) go();
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
  Promise.all(drawn).then(() => { go(); document.documentElement.dataset.ready = "yes"; });
})();
