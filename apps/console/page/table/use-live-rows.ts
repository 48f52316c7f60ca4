import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { connecting, type LiveView } from "../live/live-client.ts";
import { useLive } from "../live/live-context.ts";
import type { LiveState } from "../live/live-state.ts";
import type { TableQuery, TableShape } from "../live/view.ts";
import { type RowWindow, windowAfter, withoutRows } from "./row-window.ts";

/** The rows of a live list in the window of the table. */
export interface LiveRows {
	readonly window: RowWindow;
	readonly state: LiveState;
}

/** The rows of a table. It is opened again when what it has to contain changes. */
export function useLiveRows(
	{ typeKey, namePrefix, tenancy: { partition, namespace } }: TableQuery,
	shape: TableShape,
): LiveRows {
	const live = useLive();
	const [shown, setShown] = useState<LiveRows>({ window: withoutRows, state: connecting });
	const view = useRef<LiveView>(undefined);
	const newest = useRef(shape);
	newest.current = shape;
	// Before the first paint, which has the rows that have come already.
	useLayoutEffect(() => {
		setShown({ window: withoutRows, state: connecting });
		const query: TableQuery = { typeKey, tenancy: { partition, namespace }, namePrefix };
		const opened = live.open(
			{ kind: "table", ...query, ...newest.current },
			{
				onUpdate: ({ state, content }) =>
					setShown((before) => ({
						state: state ?? before.state,
						window: content?.kind === "table" ? windowAfter(before.window, content) : before.window,
					})),
			},
		);
		view.current = opened;
		return () => {
			view.current = undefined;
			opened.close();
		};
	}, [live, typeKey, partition, namespace, namePrefix]);
	const { order, filter, start, count } = shape;
	useEffect(
		() => view.current?.reshape({ order, filter, start, count }),
		[order, filter, start, count],
	);
	return shown;
}
