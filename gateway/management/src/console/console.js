// What makes pages easier where a browser runs scripts. Everything works without it, but copying and what is live.

const language = document.documentElement.lang;
const clock = { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" };
const formats = [{ dateStyle: "medium" }, clock].map((style) => new Intl.DateTimeFormat(language, style));

// Times in the reader's zone, which they name. A line can break between date and clock only.
function showZoned(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    if (!Number.isNaN(date.getTime())) {
      time.title = time.textContent;
      const parts = formats.map((format) => format.format(date).replaceAll(/\s/g, "\u00a0"));
      time.textContent = parts.join(" ");
    }
  }
}
showZoned(document);

// Buttons that copy a value.
for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = button.dataset.done;
  });
}

// Parts that refresh while the page is visible.
const REFRESH_MS = 10000;
async function refresh() {
  if (document.hidden) return;
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  // The session has ended.
  if (response.redirected) return location.assign(response.url);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of document.querySelectorAll("[data-refresh]")) {
    const next = page.getElementById(part.id);
    if (!next) continue;
    showZoned(next);
    part.replaceChildren(...next.childNodes);
  }
}
if (document.querySelector("[data-refresh]")) {
  // Without a connection, what was shown last stays.
  setInterval(() => refresh().catch(() => {}), REFRESH_MS);
}

// Requests as they come, the newest on top.
const MAX_ROWS = 200;
for (const section of document.querySelectorAll("[data-stream]")) {
  const status = section.querySelector("[role=status]");
  const rows = section.querySelector("tbody");
  const say = (text) => {
    if (status.textContent !== text) status.textContent = text;
  };
  let source;
  const open = () => {
    source = new EventSource(section.dataset.stream);
    source.addEventListener("open", () => say(status.dataset.on));
    source.addEventListener("error", () => {
      say(source.readyState === EventSource.CLOSED ? status.dataset.ended : status.dataset.off);
    });
    source.addEventListener("missed", (event) => {
      say(status.dataset.missed.replace("#", JSON.parse(event.data).requests));
    });
    source.addEventListener("request", (event) => {
      rows.insertAdjacentHTML("afterbegin", event.data);
      showZoned(rows.firstElementChild);
      while (rows.children.length > MAX_ROWS) rows.lastElementChild.remove();
    });
  };
  // Browsers limit the connections to a host: a hidden tab closes its stream.
  document.addEventListener("visibilitychange", () => (document.hidden ? source?.close() : open()));
  if (!document.hidden) open();
}
