// A line of small bars: what was counted in each slot of a window.

import type { Slot } from "./types.ts";
import { grouped, places, type Extent } from "./timeline.ts";

const WIDTH = 132;
const HEIGHT = 30;
const MOST = 44;

/** Draws the events of each slot, the newest at the right. */
export function Spark({ extent, slots }: { extent: Extent; slots: Slot[] }) {
  const groups = grouped(places(extent, slots), MOST);
  const values = groups.map((group) => group.slots.reduce((all, slot) => all + slot.events, 0));
  const top = Math.max(...values, 1);
  const step = WIDTH / groups.length;
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <path class="spark-ground" d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} />
      {values.map((value, index) => {
        const height = value > 0 ? Math.max((value / top) * (HEIGHT - 2), 1.5) : 0;
        const wide = Math.min(Math.max(step - 1, 1), 14);
        const kind = index === values.length - 1 ? "spark-bar is-head" : "spark-bar";
        return <rect key={index} class={kind} x={(index + 1) * step - wide} y={HEIGHT - height} width={wide} height={height} />;
      })}
    </svg>
  );
}
