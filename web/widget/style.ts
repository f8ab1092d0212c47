// The style of the element. Colors are those of the page, mixed with transparency, so they fit light and dark pages.

const CSS = `
:host { display: block; --_accent: var(--rolltop-accent, currentColor); --_gap: var(--rolltop-gap, .25em); --_picture: var(--rolltop-picture, 1.75em); }
:host([hidden]), [hidden] { display: none !important; }
[part=header] { display: flex; align-items: baseline; gap: .75em; margin-block-end: calc(2 * var(--_gap)); }
[part=label] { font-weight: 600; min-inline-size: 0; overflow-wrap: anywhere; }
[part=status] { display: flex; align-items: center; gap: .4em; margin-inline-start: auto; font-size: .8em; white-space: nowrap; }
[part=dot] { flex: none; inline-size: .6em; block-size: .6em; border-radius: 50%; border: 1px solid currentColor; box-sizing: border-box; }
:host([data-state=live]) [part=dot], :host([data-state=polling]) [part=dot] {
  border-color: transparent; background: var(--rolltop-live, #16a34a);
}
[part=list] { display: grid; gap: var(--_gap); margin: 0; padding: 0; list-style: none; }
[part~=line] {
  position: relative; isolation: isolate; display: grid; grid-auto-flow: column;
  grid-template-columns: minmax(1.5em, max-content) 1fr; grid-auto-columns: max-content;
  align-items: baseline; gap: .75em; padding: .4em .6em; border-radius: var(--rolltop-radius, .3em);
}
[data-pictures] [part~=line] { align-items: center; grid-template-columns: minmax(1.5em, max-content) max-content 1fr; }
[part=picture] { inline-size: var(--_picture); block-size: var(--_picture); }
[part=picture] img { display: block; inline-size: 100%; block-size: 100%; object-fit: cover; border-radius: var(--rolltop-picture-radius, 50%); }
[part=tie] { font-size: .8em; white-space: nowrap; font-variant-numeric: tabular-nums; color: color-mix(in srgb, currentColor 75%, transparent); }
[part=rank], [part=score] { font-variant-numeric: tabular-nums; }
[part=rank] { text-align: end; }
[part~=subject] {
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: var(--rolltop-subject-lines, 2); overflow: hidden;
  min-inline-size: 0; overflow-wrap: anywhere; unicode-bidi: isolate; color: inherit;
}
a[part=subject] { text-decoration-color: color-mix(in srgb, currentColor 50%, transparent); text-underline-offset: .15em; }
a[part=subject]::after { content: ""; position: absolute; inset: 0; border-radius: inherit; }
a[part=subject]:hover { text-decoration-color: currentColor; }
[part~=removed] { color: color-mix(in srgb, currentColor 70%, transparent); font-style: italic; }
[part=tier] {
  max-inline-size: 9em; padding-inline: .5em; border-radius: 1em; font-size: .8em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  unicode-bidi: isolate; box-shadow: inset 0 0 0 1px color-mix(in srgb, currentColor 30%, transparent);
}
[part~=move] { min-inline-size: 2.2em; font-size: .8em; text-align: end; font-variant-numeric: tabular-nums; }
[part~=up] { color: var(--rolltop-up, inherit); }
[part~=down] { color: var(--rolltop-down, inherit); }
[part=bar] {
  position: absolute; z-index: -1; inset-block: 0; inset-inline-start: 0; inline-size: 0; border-radius: inherit;
  background: color-mix(in srgb, var(--_accent) var(--rolltop-bar, 9%), transparent);
}
:host([data-state=reconnecting]) [part=bar] { background: none; outline: 1px dashed color-mix(in srgb, currentColor 25%, transparent); outline-offset: -1px; }
[part=message] { margin: 0; padding: .4em .6em; overflow-wrap: anywhere; }
@media (prefers-reduced-motion: no-preference) { [part=bar] { transition: inline-size .3s; } }
@media (forced-colors: active) { [part=bar] { display: none; } }
`;

let sheet: CSSStyleSheet | undefined;

/** Returns the style sheet, which all elements share. A constructed one needs no permission of a content security policy. */
export function styleSheet(): CSSStyleSheet {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(CSS.replace(/\s+/g, " "));
  }
  return sheet;
}
