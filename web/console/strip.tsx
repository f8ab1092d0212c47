// The window of a board as a strip of slots: it fills at the head, slides, and slots leave it at the floor.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren, RefObject, TargetedKeyboardEvent, TargetedPointerEvent } from "preact";
import { formatted } from "../ranking/json.ts";
import { axisLabel, duration, now, time } from "./clock.ts";
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

/** An expired slot that is being subtracted. */
export interface Leaving {
  from: string;
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
  leaving: Leaving[];
  /** The accessible name. */
  label: string;
  /** What several slots together hold, in words. */
  sum: (bars: Bar[]) => string;
  /** What is said while no slot is chosen. */
  children?: ComponentChildren;
  /** Whether slots leave the window; they do not over all time. */
  rolls?: boolean;
}

/** Space in pixels: for slots that leave, for the next slot, above and below the slots, and their height. */
const LEFT = 56;
const RIGHT = 48;
const ABOVE = 26;
const BELOW = 24;
const HEIGHT = 112;
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

/** Returns the slots that have left the window a moment ago. */
function useGone(extent: Extent, bars: Bar[]): Bar[] {
  const last = useRef<{ extent: Extent; bars: Bar[] }>({ extent, bars });
  const [gone, setGone] = useState<{ bar: Bar; until: number }[]>([]);
  useEffect(() => {
    const before = last.current;
    last.current = { extent, bars };
    // A board with other slots, or a jump of the clock: nothing that one could watch.
    if (before.extent.slots !== extent.slots || extent.from <= before.extent.from || extent.from >= before.extent.to) return;
    const left = before.bars.filter((bar) => Date.parse(bar.from) < extent.from && bar.value > 0).slice(-1);
    if (left.length === 0) return;
    const linger = lingering(extent);
    const until = Date.now() + linger;
    setGone((known) => [...known.filter((one) => one.until > Date.now()), ...left.map((bar) => ({ bar, until }))].slice(-1));
    setTimeout(() => setGone((known) => known.filter((one) => one.until > Date.now())), linger + 50);
  });
  return gone.filter((one) => Date.parse(one.bar.from) < extent.from).map((one) => one.bar);
}

/** Draws the strip. The slots can be read one by one with the pointer and the arrow keys. */
export function Strip({ extent, bars, leaving, label, sum, children, rolls = true }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const chosen = useSignal<number | null>(null);
  const gone = useGone(extent, bars);

  const room = Math.max(width - LEFT - RIGHT, 1);
  const groups = grouped(places(extent, bars), Math.max(1, Math.min(MOST, Math.floor(room / 3))));
  const unit = room / extent.slots;
  const cell = unit * Math.max(...groups.map((group) => group.size), 1);
  const gap = cell > 14 ? 4 : cell > 5 ? 2 : cell > 3 ? 1 : 0;
  const values = groups.map((group) => group.slots.reduce((all, bar) => all + Math.max(bar.value, 0), 0));
  const top = Math.max(...values, ...gone.map((bar) => bar.value), 0);
  const tall = (value: number) => (top > 0 ? Math.max((value / top) * HEIGHT, value > 0 ? 2 : 0) : 0);
  const length = (extent.to - extent.from) / extent.slots;
  const head = extent.starts[extent.slots - 1] ?? extent.from;
  const elapsed = Math.min(Math.max((now.value - head) / (extent.to - head), 0), 1);
  const isSingle = groups.length === extent.slots;
  const nowAt = LEFT + unit * (extent.slots - 1 + elapsed);

  const pick = (x: number) => {
    const place = Math.min(Math.max(Math.floor((x - LEFT) / unit), 0), extent.slots - 1);
    return groups.findLastIndex((group) => group.start <= place);
  };
  const onPointer = (event: TargetedPointerEvent<HTMLElement>) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    chosen.value = x < LEFT || x > width - RIGHT ? null : pick(x);
  };
  const onKey = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const at = chosen.value ?? groups.length;
    const next: Record<string, number | null> = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      PageDown: at - 10,
      PageUp: at + 10,
      Home: 0,
      End: groups.length - 1,
      Escape: null,
    };
    const to = next[event.key];
    if (to === undefined) return;
    event.preventDefault();
    chosen.value = to === null ? null : Math.min(Math.max(to, 0), groups.length - 1);
  };

  /** Says what a group of slots holds and when it leaves. */
  const says = (index: number) => {
    const group = groups[index];
    if (!group) return { what: "", rest: "" };
    const what = `${time(group.from)} – ${time(group.to)}`;
    const held = group.slots.length > 0 ? sum(group.slots) : "nothing";
    const leaves = leavesAt(extent, group.start);
    const when = !rolls ? "" : isSingle ? `leaves the window at ${time(leaves)}` : `begins to leave at ${time(leaves)}`;
    const isHead = index === groups.length - 1;
    return { what, rest: [held, isHead ? "being filled now" : "", when].filter(Boolean).join(" · ") };
  };
  const shown = chosen.value !== null && chosen.value < groups.length ? chosen.value : null;
  const text = shown === null ? null : says(shown);

  const ticks = ticksOf(groups.map((group) => group.start * unit), room);
  const outside = [
    ...leaving.map(({ from, says }) => ({ from: Date.parse(from), value: 0, says })),
    ...gone.filter((bar) => !leaving.some((one) => one.from === bar.from))
      .map((bar) => ({ from: Date.parse(bar.from), value: bar.value, says: `−${formatted(bar.value)}` })),
  ].slice(-1);
  const small = Math.max(Math.min(cell - gap, 34), 5);
  // One list with the ends of the slots as keys, so that a slot that leaves is seen moving out.
  const cells: Cell[] = [
    ...outside.map(({ from, value, says }, index) => ({
      key: from,
      kind: "is-leaving",
      x: LEFT - 14 - small - (small + 6) * (outside.length - 1 - index),
      wide: small,
      height: tall(value),
      filled: 0,
      says,
    })),
    ...groups.map((group, index) => {
      const isHead = index === groups.length - 1;
      const kinds = [isHead && "is-head", rolls && index === 0 && !isHead && "is-floor", index === shown && "is-chosen"];
      return {
        key: group.key,
        kind: kinds.filter(Boolean).join(" "),
        x: LEFT + group.start * unit,
        wide: Math.max(group.size * unit - gap, 0.5),
        height: tall(values[index] ?? 0),
        filled: isHead && cell > 5 ? (group.size - 1 + elapsed) / group.size : 0,
        says: "",
      };
    }),
  ];

  return (
    <div class="strip">
      <div
        ref={frame}
        class="strip-slots"
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={groups.length - 1}
        aria-valuenow={shown ?? groups.length - 1}
        aria-valuetext={`${says(shown ?? groups.length - 1).what}: ${says(shown ?? groups.length - 1).rest}`}
        onPointerMove={onPointer}
        onPointerDown={onPointer}
        onPointerLeave={() => (chosen.value = null)}
        onKeyDown={onKey}
        onBlur={() => (chosen.value = null)}
      >
        {width > 0 && (
          <svg width={width} height={ABOVE + HEIGHT + BELOW} aria-hidden="true">
            <rect class="strip-window" x={LEFT - 5} y={ABOVE - 5} width={room + 10 - gap} height={HEIGHT + 10} rx="8" />
            {cells.map(({ key, kind, x, wide, height, filled, says }) => (
              <g key={key} class={`slot ${kind}`} style={{ transform: `translateX(${x}px)`, animationDuration: kind === "is-leaving" ? `${lingering(extent)}ms` : "" }}>
                <rect class="slot-room" y={ABOVE} width={wide} height={HEIGHT} rx={cell > 14 ? 4 : 1} />
                {filled > 0 && <rect class="slot-time" y={ABOVE} width={wide * filled} height={HEIGHT} rx={cell > 14 ? 4 : 1} />}
                <rect class="slot-bar" y={ABOVE + HEIGHT - height} width={wide} height={height} rx={cell > 14 ? Math.min(4, height / 2) : 0} />
                {says && <text x={wide / 2} y={ABOVE + HEIGHT + 18} text-anchor="middle">{says}</text>}
              </g>
            ))}
            {rolls && outside.length === 0 && (
              <rect class="strip-outside" x={LEFT - 14 - small} y={ABOVE} width={small} height={HEIGHT} rx="4" />
            )}
            {rolls && (
              <rect class="strip-outside" x={width - RIGHT + 8} y={ABOVE} width={small} height={HEIGHT} rx="4" />
            )}
            <path class="strip-now" d={`M${nowAt} ${ABOVE - 7}V${ABOVE + HEIGHT}`} />
            <text class="strip-now-text" x={Math.min(nowAt + 3, width)} y={ABOVE - 12} text-anchor="end">now {time(now.value, true)}</text>
            {rolls && width > 360 && groups.length > 1 && <text class="strip-floor-text" x={LEFT - 4} y={ABOVE - 12}>leaves next</text>}
            {ticks.map((index, at) => (
              <text key={index} x={LEFT + (groups[index]?.start ?? 0) * unit} y={ABOVE + HEIGHT + 19}>
                {axisLabel(groups[index]?.from ?? 0, groups[ticks[at - 1] ?? -1]?.from ?? null, length < 60_000)}
              </text>
            ))}
          </svg>
        )}
      </div>
      <p class="strip-says">
        {text ? <><b>{text.what}</b> {text.rest}</> : children}
      </p>
    </div>
  );
}

/** Returns which groups have a label with their beginning: about one each 110 pixels, the oldest first. */
function ticksOf(places: number[], room: number): number[] {
  const ticks: number[] = [];
  let free = 0;
  places.forEach((place, index) => {
    if (place < free || (room - place < 60 && index > 0)) return;
    ticks.push(index);
    free = place + 110;
  });
  return ticks;
}

/** Says when the next slot leaves, and what it takes with it. */
export function NextToLeave({ extent, bars, sum }: { extent: Extent; bars: Bar[]; sum: (bars: Bar[]) => string }) {
  const first = bars.find((bar) => placeOf(extent, Date.parse(bar.from)) === 0);
  const left = extent.to - now.value;
  if (left <= 0) return <>The next slot is about to begin.</>;
  if (extent.slots === 1) return <>In <b>{duration(left)}</b>, at {time(extent.to)}, the window ends and begins again, empty.</>;
  return (
    <>
      In <b>{duration(left)}</b>, at {time(extent.to)}, the slot of {time(extent.from)} leaves the window
      {first ? <>: {sum([first])} will no longer count.</> : "; nothing was counted in it."}
    </>
  );
}
