// The window of a board as a strip of slots: it fills at the head, slides, and slots leave it at the floor.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ComponentChildren, RefObject, TargetedKeyboardEvent, TargetedPointerEvent } from "preact";
import { formatted } from "../widget/numbers.ts";
import { duration, now, time, zone as chosenZone, type Manner } from "./clock.ts";
import { inWords } from "./span.ts";
import { ticksOf } from "./ticks.ts";
import { grouped, leavesAt, placeOf, places, type Extent } from "./timeline.ts";

/** A slot with what it holds. */
export interface Bar {
  from: string;
  to: string;
  /** The height of the bar. */
  value: number;
  /** What it holds, in words. */
  says: string;
}

/** A slot as it is drawn. */
interface Cell {
  key: number;
  kind: string;
  x: number;
  wide: number;
  height: number;
  /** The share of its time that has passed, from 0 to 1; 0 draws none. */
  filled: number;
  says: string;
}

interface Props {
  extent: Extent;
  bars: Bar[];
  /** The beginnings of expired slots that are being subtracted. */
  leaving: string[];
  /** The accessible name, and what the height of a bar is. */
  label: string;
  height: string;
  /** How times of slots are written. */
  manner: Manner;
  /** What several slots together hold, in words. */
  sum: (bars: Bar[]) => string;
  /** What is said while no slot is chosen. */
  children?: ComponentChildren;
  /** Whether slots leave the window; they do not over all time. */
  rolls?: boolean;
}

/** Space in pixels above and below the slots, and their height. */
const ABOVE = 26;
const BELOW = 24;
const HEIGHT = 112;
/** The width below which there is little room. */
const NARROW = 480;
/** The most slots that are drawn one by one. */
const MOST = 180;
/** The longest time for which a slot that has left is still shown, in milliseconds. */
const LINGER = 3_500;

/** Returns the width of an element, as it changes. */
function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!element.current) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(element.current);
    setWidth(Math.floor(element.current.getBoundingClientRect().width));
    return () => observer.disconnect();
  }, []);
  return width;
}

/** Returns how long a slot that has left is still shown: not longer than until the next one leaves. */
function lingering(extent: Extent): number {
  return Math.min(Math.max((extent.to - extent.from) / extent.slots, 900), LINGER);
}

/** Returns the slot that has left the window a moment ago. */
function useGone(extent: Extent, bars: Bar[]): Bar | null {
  const last = useRef<{ extent: Extent; bars: Bar[] }>({ extent, bars });
  const [gone, setGone] = useState<Bar | null>(null);
  useEffect(() => {
    const before = last.current;
    last.current = { extent, bars };
    // A board with other slots, or a jump of the clock: nothing that one could watch.
    if (before.extent.slots !== extent.slots || extent.from <= before.extent.from || extent.from >= before.extent.to) return;
    const left = before.bars.filter((bar) => Date.parse(bar.from) < extent.from && bar.value > 0).at(-1);
    if (left) setGone(left);
  });
  useEffect(() => {
    if (!gone) return undefined;
    const timer = setTimeout(() => setGone(null), lingering(extent));
    return () => clearTimeout(timer);
  }, [gone]);
  return gone && Date.parse(gone.from) < extent.from ? gone : null;
}

/** Draws the strip. The slots can be read one by one with the pointer and the arrow keys. */
export function Strip({ extent, bars, leaving, label, height: unitOfHeight, manner, sum, children, rolls = true }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const chosen = useSignal<number | null>(null);
  const byPointer = useRef(false);
  const gone = useGone(extent, bars);

  const isNarrow = width < NARROW;
  const left = !rolls ? 6 : isNarrow ? 26 : 52;
  const room = Math.max(width - left - 8, 1);
  const unit = room / extent.slots;
  const zone = manner.zone ?? chosenZone.value;
  // Drawn four times a second, but with the same slots until they are read again.
  const groups = useMemo(() => grouped(places(extent, bars), Math.max(1, Math.min(MOST, Math.floor(room / 3)))), [extent, bars, room]);
  const cell = unit * Math.max(...groups.map((group) => group.size), 1);
  const gap = cell > 14 ? 4 : cell > 5 ? 2 : cell > 3 ? 1 : 0;
  const values = groups.map((group) => group.slots.reduce((all, bar) => all + Math.max(bar.value, 0), 0));
  const top = Math.max(...values, gone?.value ?? 0, 0);
  const tall = (value: number) => (top > 0 && value > 0 ? Math.max((value / top) * HEIGHT, 2) : 0);
  const head = extent.starts[extent.slots - 1] ?? extent.from;
  const elapsed = Math.min(Math.max((now.value - head) / (extent.to - head), 0), 1);
  const isSingle = groups.length === extent.slots;
  const nowAt = left + unit * (extent.slots - 1 + elapsed);
  const newest = groups.length - 1;

  const onPointer = (event: TargetedPointerEvent<HTMLElement>) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left - left;
    byPointer.current = true;
    chosen.value = x < 0 || x > room ? null : groups.findLastIndex((group) => group.start <= x / unit);
  };
  const onKey = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const at = chosen.value ?? newest;
    const next: Record<string, number | null> = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      PageDown: at - 10,
      PageUp: at + 10,
      Home: 0,
      End: newest,
      Escape: null,
    };
    const to = next[event.key];
    if (to === undefined) return;
    event.preventDefault();
    byPointer.current = false;
    chosen.value = to === null ? null : Math.min(Math.max(to, 0), newest);
  };

  /** Says what a group of slots holds and when it leaves. */
  const says = (index: number) => {
    const group = groups[index];
    if (!group) return { what: "", rest: "" };
    const what = `${time(group.from, manner)} – ${time(group.to, manner)}`;
    const held = group.slots.length > 0 ? sum(group.slots) : "nothing";
    const when = !rolls ? "" : `${isSingle ? "leaves" : "begins to leave"} at ${time(leavesAt(extent, group.start), manner)}`;
    return { what, rest: [held, index === newest ? "being filled now" : "", when].filter(Boolean).join(" · ") };
  };
  const shown = chosen.value !== null && chosen.value <= newest ? chosen.value : null;
  const text = shown === null ? null : says(shown);
  const spoken = says(shown ?? newest);

  const ticks = useMemo(
    () => ticksOf(groups.map((group) => group.from), room / groups.length, isNarrow ? 84 : 100, zone),
    [extent.from, extent.slots, room, zone],
  );
  const small = Math.max(Math.min(cell - gap, isNarrow ? 16 : 34), 5);
  const out = gone ?? (leaving[0] === undefined ? null : { from: leaving[0], value: 0 });
  // One list with the times of the slots as keys, so that a slot that leaves is seen moving out.
  const cells: Cell[] = groups.map((group, index) => {
    const kinds = [index === newest && "is-head", rolls && index === 0 && newest > 0 && "is-floor", index === shown && "is-chosen"];
    return {
      key: group.key,
      kind: kinds.filter(Boolean).join(" "),
      x: left + group.start * unit,
      wide: Math.max(group.size * unit - gap, 0.5),
      height: tall(values[index] ?? 0),
      filled: index === newest && cell > 5 ? (group.size - 1 + elapsed) / group.size : 0,
      says: "",
    };
  });
  if (out && rolls) {
    cells.unshift({
      key: Date.parse(out.from),
      kind: "is-leaving",
      x: left - 12 - small,
      wide: small,
      height: tall(out.value),
      filled: 0,
      says: out.value > 0 && !isNarrow ? `−${formatted(out.value)}` : "",
    });
  }

  return (
    <div class="strip">
      <div
        ref={frame}
        class="strip-slots"
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-roledescription="timeline"
        aria-valuemin={0}
        aria-valuemax={newest}
        aria-valuenow={shown ?? newest}
        aria-valuetext={`${spoken.what}: ${spoken.rest}`}
        onPointerMove={onPointer}
        onPointerDown={onPointer}
        onPointerLeave={() => {
          if (byPointer.current) chosen.value = null;
        }}
        onKeyDown={onKey}
        onBlur={() => (chosen.value = null)}
      >
        {width > 0 && (
          <svg width={width} height={ABOVE + HEIGHT + BELOW} aria-hidden="true">
            <rect class="strip-window" x={left - 5} y={ABOVE - 5} width={room + 10 - gap} height={HEIGHT + 10} rx="8" />
            {cells.map(({ key, kind, x, wide, height, filled, says }) => (
              <g
                key={key}
                class={`slot ${kind}`}
                style={{ transform: `translateX(${x}px)`, animationDuration: kind === "is-leaving" ? `${lingering(extent)}ms` : "" }}
              >
                <rect class="slot-room" y={ABOVE} width={wide} height={HEIGHT} rx={cell > 14 ? 4 : 1} />
                {filled > 0 && <rect class="slot-time" y={ABOVE} width={wide * filled} height={HEIGHT} rx={cell > 14 ? 4 : 1} />}
                <rect class="slot-bar" y={ABOVE + HEIGHT - height} width={wide} height={height} rx={cell > 14 ? Math.min(4, height / 2) : 0} />
                {says && <text x={wide / 2} y={ABOVE + HEIGHT + 19} text-anchor="middle">{says}</text>}
              </g>
            ))}
            <path class="strip-now" d={`M${nowAt} ${ABOVE - 7}V${ABOVE + HEIGHT}`} />
            <text class="strip-now-text" x={Math.max(Math.min(nowAt + 3, width), 110)} y={ABOVE - 12} text-anchor="end">now {time(now.value, { precise: true })}</text>
            <text class="strip-unit" x={left - 4} y={ABOVE - 12}>{unitOfHeight}</text>
            {ticks.map(({ place, text }) => (
              <g key={groups[place]?.key} class="tick" style={{ transform: `translateX(${left + (groups[place]?.start ?? 0) * unit}px)` }}>
                <text y={ABOVE + HEIGHT + 19}>{text}</text>
              </g>
            ))}
          </svg>
        )}
      </div>
      <p class="strip-says">{text ? <><b>{text.what}</b> {text.rest}</> : children}</p>
      {rolls && newest > 0 && (
        <p class="strip-legend" aria-hidden="true">
          <span><i class="is-counted" />counted</span>
          <span><i class="is-head" />being filled now</span>
          <span><i class="is-floor" />leaves next</span>
          <span><i class="is-leaving" />has just left</span>
        </p>
      )}
    </div>
  );
}

/** Says when the next slot leaves, and what it takes with it. */
export function NextToLeave({ extent, bars, sum, slot, manner }: { extent: Extent; bars: Bar[]; sum: (bars: Bar[]) => string; slot: string; manner: Manner }) {
  const length = (extent.to - extent.from) / extent.slots;
  const first = bars.find((bar) => placeOf(extent, Date.parse(bar.from)) === 0);
  const left = extent.to - now.value;
  // A sentence that changes faster than it can be read says nothing.
  if (length < 10_000) return <>Every {inWords(slot)} the oldest slot leaves the window, and what is in it stops counting.</>;
  if (left <= 0) return <>The next slot begins now.</>;
  if (extent.slots === 1) return <>In <b>{duration(left)}</b>, at {time(extent.to)}, the window ends and begins again, empty.</>;
  return (
    <>
      In <b>{duration(left)}</b>, at {time(extent.to)}, the slot of {time(extent.from, manner)} leaves the window
      {first ? <>, with its {sum([first])}.</> : "; it is empty."}
    </>
  );
}
