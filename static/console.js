/* Does what the HTML declares by data attributes (docs/console.md). Every page works without it. */
"use strict";
(() => {
  const FAST_FOR = 60_000, STALE_AFTER = 30_000, SLOWEST = 60_000; // ms
  const page = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (css, root = document) => [...root.querySelectorAll(css)];
  const words = byId("announce")?.dataset ?? {};
  const announce = (text) => {
    const place = byId("announce");
    if (!place || !text) return;
    place.textContent = "";
    requestAnimationFrame(() => { place.textContent = text; });
  };
  const closest = (event, css) => (event.target instanceof Element ? event.target.closest(css) : null);
  const isField = (element) => element instanceof Element &&
    element.matches("input:not([type=checkbox], [type=radio], [type=submit]), textarea, select");
  const isVisible = (element) => element.getClientRects().length > 0;
  const show = (id, visible) => { if (byId(id)) byId(id).hidden = !visible; };

  /* ----------------------------------------------------------- in hand or not */
  const typed = new WeakSet();
  document.addEventListener("input", (event) => { if (event.target.form) typed.add(event.target.form); });
  document.addEventListener("reset", (event) => typed.delete(event.target));
  const isTyped = (form) => typed.has(form) || "typed" in form.dataset;
  let pointed = null; // what the pointer rests on; a finger that left the glass rests nowhere
  document.addEventListener("pointerover", (event) => {
    pointed = event.pointerType === "touch" ? null : event.target;
  });
  page.addEventListener("pointerleave", () => { pointed = null; });
  const isInHand = (region) => {
    const selection = getSelection();
    return region.contains(pointed) && pointed !== null
      || region.contains(document.activeElement)
      || (selection && !selection.isCollapsed && selection.containsNode(region, true))
      || all("form", region).some(isTyped)
      || region.querySelector(":is([data-rows], [data-ticks]) :checked, details[open] form, .is-busy, .htmx-request") !== null;
  };

  /* ----------------------------------------------------------------- swapping */
  const TIMES = "time, [data-closes]";
  /* What is left of a region when its times, tokens and what this script sets are blank. */
  const bare = (region) => {
    const copy = region.cloneNode(true);
    for (const time of all(TIMES, copy)) time.replaceChildren();
    for (const token of all("[type=hidden][name$=token]", copy)) token.remove();
    return copy.innerHTML
      .replace(/ (data-etag|datetime|aria-label|aria-current|aria-disabled|open|hidden)(="[^"]*")?(?=[ >])/g, "")
      .replace(/ ?(is-current|window--soon|window--open)| class=""/g, "").replace(/\s+/g, " ");
  };
  const writeTimes = (region, fresh) => {
    const news = all(TIMES, fresh);
    all(TIMES, region).forEach((time, place) => {
      if (news[place] && time.innerHTML !== news[place].innerHTML) time.innerHTML = news[place].innerHTML;
    });
  };
  const ready = (element) => {
    window.htmx?.process(element);
    for (const hidden of all(".js-only[hidden]", element)) hidden.hidden = false;
    turn();
  };
  const append = (region, fresh) => {
    const added = [...fresh.children].filter((child) => child.id && !byId(child.id));
    for (const child of added) {
      region.append(child);
      ready(child);
    }
    if (added.length) announce(words.added);
    return added.length > 0;
  };
  const put = (region, fresh) => {
    const had = region.contains(document.activeElement) ? document.activeElement : null;
    const row = had?.closest("[data-rows] > *");
    const next = row?.nextElementSibling;
    const open = all("details[open][id]", region), ticked = all(":is([data-rows], [data-ticks]) :checked", region);
    region.replaceWith(fresh);
    ready(fresh);
    for (const { id } of open) byId(id)?.setAttribute("open", "");
    for (const { id } of ticked) if (byId(id)) byId(id).checked = true;
    if (!had) return;
    const place = (had.id && byId(had.id)) || [row, next].map((one) => one?.id && byId(one.id)?.querySelector("a")).find(Boolean);
    if (!place) fresh.tabIndex = -1;
    (place || fresh).focus({ preventScroll: true });
  };
  const waiting = new Map(); // id of a region → what it will become
  const take = (id, fresh, isWanted = false) => {
    const region = byId(id);
    waiting.delete(id);
    if (!region || !fresh) return false;
    if ("append" in region.dataset) return append(region, fresh);
    if (bare(region) === bare(fresh)) {
      writeTimes(region, fresh);
      return false;
    }
    if (isWanted || region.dataset.hold === "never" || !isInHand(region)) put(region, fresh);
    else waiting.set(id, fresh);
    return !waiting.has(id);
  };
  const offer = () => {
    const isLoud = [...waiting.keys()].some((id) => byId(id)?.dataset.hold !== "quiet");
    if (isLoud && byId("held")?.hidden) announce(words.held);
    show("held", isLoud);
  };
  const showChanges = () => {
    const ids = [...waiting.keys()];
    for (const [id, fresh] of [...waiting]) take(id, fresh, true);
    const region = byId(ids[0]);
    const place = region?.querySelector(".is-current a") ?? region;
    if (place === region && region) region.tabIndex = -1;
    place?.focus({ preventScroll: true });
    offer();
    announce(words.shown);
  };

  /* ------------------------------------------------------------------ polling */
  const askedAt = new Map(); // address → when it was asked last; Infinity while it is
  let skew = 0; // ms that the server is ahead of this clock
  let asOf = document.querySelector("[data-asof]")?.textContent ?? "";
  let activeAt = Date.now(), answeredAt = Date.now(), loadedAt = Date.now();
  let failures = 0, swaps = 0, isStale = false, isSignedOut = false;
  const isPaused = () => sessionStorage.getItem("paused") === "1";
  const addresses = () => {
    const found = new Map();
    for (const region of all("[data-live][id]")) {
      found.set(region.dataset.live, [...(found.get(region.dataset.live) ?? []), region]);
    }
    return found;
  };
  const pauseOf = (regions) => {
    const isFast = Date.now() - activeAt < FAST_FOR;
    const each = regions.map(({ dataset }) => Number(isFast ? dataset.fast ?? 15 : dataset.slow ?? 60));
    const pause = Math.min(...each) * 1000;
    return failures ? Math.max(pause, Math.min(SLOWEST, pause * 2 ** failures)) : pause;
  };
  const ask = async (address, regions) => {
    const { etag } = regions[0].dataset;
    const headers = { "HX-Request": "true", "HX-Current-URL": location.href, ...(etag && { "If-None-Match": etag }) };
    const before = swaps;
    try {
      const answer = await fetch(address, { headers, cache: "no-store", signal: AbortSignal.timeout(10_000) });
      if (answer.headers.has("HX-Redirect")) return signOut(answer.headers.get("HX-Redirect"));
      if (!answer.ok && answer.status !== 304) throw new Error(answer.status);
      const text = answer.status === 304 ? "" : await answer.text();
      const now = Date.parse(answer.headers.get("X-Now") ?? "");
      if (now) skew = now - Date.now();
      asOf = answer.headers.get("X-As-Of") ?? asOf;
      [answeredAt, failures] = [Date.now(), 0];
      setStale(false);
      if (text && !isPaused() && before === swaps) {
        const fresh = new DOMParser().parseFromString(text, "text/html");
        const ids = regions.map(({ id }) => id);
        if (ids.filter((id) => take(id, fresh.getElementById(id))).length) activeAt = Date.now();
        for (const id of ids) if (byId(id)) byId(id).dataset.etag = answer.headers.get("ETag") ?? "";
        offer();
      }
      for (const place of all("[data-asof]")) place.textContent = asOf;
    } catch {
      failures += 1;
    }
  };
  /* What could be done wrongly is off while the page may be out of date. */
  const turn = () => {
    for (const act of all(isStale ? "[data-needs-live]" : "[data-needs-live][aria-disabled]")) {
      act.toggleAttribute("aria-disabled", isStale);
      if (isStale) act.setAttribute("aria-disabled", "true");
    }
  };
  const setStale = (stale) => {
    if (stale === isStale) return;
    isStale = stale;
    show("not-updated", stale && !isSignedOut);
    for (const time of all("#not-updated time")) time.textContent = asOf;
    turn();
  };
  const signOut = (to) => {
    isSignedOut = true;
    show("signed-out", true);
    for (const link of all("#signed-out a")) link.href = to;
    setStale(true);
  };
  const refuse = (event) => {
    const act = event.type === "click" ? closest(event, "[data-needs-live]")
      : event.submitter ?? event.target.querySelector("[data-needs-live]");
    if (!isStale || !act?.matches("[data-needs-live]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    announce(byId(isSignedOut ? "signed-out" : "not-updated")?.textContent.trim());
  };
  document.addEventListener("click", refuse, true);
  document.addEventListener("submit", refuse, true);
  const beat = () => {
    tick();
    if (document.hidden || isPaused() || isSignedOut) return;
    setStale(failures > 0 && Date.now() - answeredAt > STALE_AFTER);
    for (const [address, regions] of addresses()) {
      if (Date.now() - (askedAt.get(address) ?? loadedAt) < pauseOf(regions)) continue;
      askedAt.set(address, Infinity);
      ask(address, regions).finally(() => askedAt.set(address, Date.now()));
    }
    for (const [id, fresh] of [...waiting]) if (!isInHand(byId(id) ?? page)) take(id, fresh);
    offer();
  };
  const askNow = () => {
    activeAt = Date.now();
    for (const address of addresses().keys()) if (askedAt.get(address) !== Infinity) askedAt.set(address, 0);
    beat();
  };
  for (const act of ["pointerdown", "keydown", "wheel"]) {
    document.addEventListener(act, () => { activeAt = Date.now(); }, { passive: true, capture: true });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    answeredAt = Date.now();
    askNow();
  });
  addEventListener("online", askNow);
  const showPause = () => {
    for (const button of all("[data-pause]")) button.setAttribute("aria-pressed", String(isPaused()));
  };

  /* ---------------------------------------------------------------- countdown */
  const told = new Set();
  const tick = () => {
    for (const place of all("[data-closes]")) {
      const left = Math.max(0, Math.floor((Date.parse(place.dataset.closes) - Date.now() - skew) / 1000));
      const text = [left / 60, left % 60].map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
      for (const node of place.childNodes) {
        if (node.nodeType === 3 && left < 3600) node.data = node.data.replace(/\d\d:\d\d/, text);
      }
      if (left >= 300) continue;
      if (place.matches(".window--open")) place.classList.replace("window--open", "window--soon");
      if (left > 290 && !told.has(place.dataset.closes)) announce(place.dataset.soon);
      told.add(place.dataset.closes);
    }
  };

  /* ----------------------------------------------------------------- keyboard */
  let prefixAt = 0, lastTicked = "";
  const rows = () => all("[data-rows] > *").filter((row) => isVisible(row) && row.querySelector("a"));
  const opener = (row) => row.querySelector("[data-open]") ?? row.querySelector("a");
  const step = (by) => {
    const list = rows();
    if (!list.length) return false;
    const at = list.findIndex((row) => row.matches(".is-current"));
    opener(list[at < 0 ? 0 : Math.min(list.length - 1, Math.max(0, at + by))]).focus();
    return true;
  };
  const tickRows = (isRange) => {
    const list = rows(), to = list.findIndex((row) => row.matches(".is-current"));
    const box = (row) => row?.querySelector("[type=checkbox]");
    if (!box(list[to])) return false;
    const last = list.findIndex((row) => row.id === lastTicked);
    const from = isRange && last >= 0 ? last : to;
    const wanted = from === to ? !box(list[to]).checked : true;
    for (const row of list.slice(Math.min(from, to), Math.max(from, to) + 1)) {
      if (box(row) && box(row).checked !== wanted) box(row).click();
    }
    lastTicked = list[to].id;
    return true;
  };
  document.addEventListener("change", (event) => {
    const form = closest(event, "[data-ticks]");
    if (!form) return;
    const boxes = all("[data-rows] [type=checkbox]", form);
    if (event.target.matches("[data-tick-page]")) for (const box of boxes) box.checked = event.target.checked;
    const told = form.querySelector("[data-ticked]"), count = boxes.filter((box) => box.checked).length;
    if (told) told.textContent = told.dataset[form.elements.all?.checked ? "tickedAll" : "ticked"].replace("{count}", count);
  });
  const press = (key) => {
    const target = all("[data-key]").find((one) => one.dataset.key === key && isVisible(one));
    if (!target) return false;
    if (isField(target)) { target.focus(); target.select?.(); } else target.click();
    return true;
  };
  const leave = (event) => {
    const menu = document.querySelector(".menu[open]");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
      return true;
    }
    if (isField(event.target)) return event.target.type !== "search" && (event.target.blur(), true);
    const clear = all("[data-ticks] [type=reset]").find(isVisible);
    if (clear) return clear.click(), true;
    if (!document.querySelector("[data-key=Escape]")) return false;
    return (all("main form").some(isTyped) && !confirm(words.leave)) || press("Escape");
  };
  const onKey = (event) => {
    const { key } = event;
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (document.querySelector("dialog[open]")) return false; // it closes itself
    if (key === "Escape") return leave(event);
    if (page.dataset.keys === "off" || isField(event.target)) return false;
    const isSecond = Date.now() - prefixAt < 1500;
    prefixAt = !isSecond && key === "g" ? Date.now() : 0;
    if (prefixAt || (isSecond && press(`g ${key}`))) return true;
    if (key === "j" || key === "k") return step(key === "j" ? 1 : -1) || press(key);
    if (key === "x" || key === "X") return tickRows(key === "X");
    const row = rows().find((one) => one.matches(".is-current"));
    if (key === "o" && row) return opener(row).click(), true;
    return /^[a-z/?]$/.test(key) && press(key);
  };
  document.addEventListener("keydown", (event) => { if (onKey(event)) event.preventDefault(); });
  document.addEventListener("focusin", (event) => {
    const row = closest(event, "[data-rows] > *");
    if (!row) return;
    for (const other of all(".is-current")) {
      other.classList.remove("is-current");
      other.removeAttribute("aria-current");
    }
    row.classList.add("is-current");
    row.setAttribute("aria-current", "true");
  });

  /* ----------------------------------------------------------- small comforts */
  const copy = async (source) => {
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      announce(words.copied);
    } catch {
      getSelection().selectAllChildren(source);
      announce(words.selected);
    }
  };
  /* Another page, shown over this one: its address answers both. */
  const showOver = async (link) => {
    try {
      const answer = await fetch(link.href, { headers: { "HX-Request": "true" } });
      if (!answer.ok || answer.headers.has("HX-Redirect")) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      byId("over-body").replaceChildren(...fresh.body.childNodes);
      byId("over").showModal();
    } catch {
      location.assign(link.href);
    }
  };
  document.addEventListener("click", (event) => {
    const source = byId(closest(event, "[data-copy-from]")?.dataset.copyFrom);
    if (source) copy(source);
    if (closest(event, "#show-changes")) showChanges();
    if (closest(event, "[data-pause]")) {
      sessionStorage.setItem("paused", isPaused() ? "0" : "1");
      showPause();
      announce(isPaused() ? words.paused : words.resumed);
      askNow();
    }
    const over = closest(event, "a[data-over]");
    if (over && byId("over") && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      showOver(over);
    }
  });
  /* A link into the timeline opens what it points at. */
  const openTarget = () => {
    const details = location.hash.length > 1 && byId(location.hash.slice(1))?.querySelector("details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", openTarget);
  /* Nobody is looking: a page that is hidden or paused says no more that somebody is. */
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.id === "presence" && (document.hidden || isPaused() || isSignedOut)) event.preventDefault();
  });
  document.addEventListener("htmx:afterSwap", () => {
    swaps += 1;
    for (const hidden of all(".js-only[hidden]")) hidden.hidden = false;
    turn();
    const said = document.querySelector("#op > [role=status]");
    if (said) announce(said.textContent);
  });
  const start = Date.parse(page.dataset.now ?? "");
  if (start) skew = start - Date.now();
  for (const hidden of all(".js-only[hidden]")) hidden.hidden = false;
  showPause();
  openTarget();
  document.querySelector('[role="alert"][tabindex="-1"]:not([hidden])')?.focus();
  setInterval(beat, 1000);
})();
