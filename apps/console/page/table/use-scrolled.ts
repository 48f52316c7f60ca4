import { type RefObject, useCallback, useLayoutEffect, useState } from "react";
import type { Scrolled } from "./row-window.ts";

/**
 * What an element shows of its content, to the row: a movement within a row changes nothing.
 *
 * @param rowHeight - in pixels.
 */
export function useScrolled(element: RefObject<HTMLElement | null>, rowHeight: number): Scrolled {
	const [scrolled, setScrolled] = useState<Scrolled>({ top: 0, height: 0 });
	const measure = useCallback(() => {
		const { scrollTop = 0, clientHeight = 0 } = element.current ?? {};
		const top = Math.floor(scrollTop / rowHeight) * rowHeight;
		setScrolled((before) =>
			before.top === top && before.height === clientHeight ? before : { top, height: clientHeight },
		);
	}, [element, rowHeight]);
	useLayoutEffect(() => {
		const { current } = element;
		if (current === null) {
			return undefined;
		}
		measure();
		const resized = new ResizeObserver(measure);
		resized.observe(current);
		current.addEventListener("scroll", measure, { passive: true });
		return () => {
			resized.disconnect();
			current.removeEventListener("scroll", measure);
		};
	}, [element, measure]);
	return scrolled;
}
