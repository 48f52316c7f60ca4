import type { Clock, Timer } from "@plinth/runtime";
import type { LiveState } from "../live-state.ts";
import type { Port, ToTab, ToWorker, ViewRequest, ViewUpdate } from "../view.ts";
import { OverviewView } from "./overview-view.ts";
import { ResourceView } from "./resource-view.ts";
import type { ServerLink } from "./server-link.ts";
import { TableView } from "./table-view.ts";
import type { ViewSource } from "./view-source.ts";

/** The most views that a tab may have open. */
const mostViews = 100;

/** Called when there may be something to take. It is sent at once if it is urgent. */
type OnChange = (isUrgent?: boolean) => void;

interface OpenView {
	readonly request: ViewRequest;
	readonly source: ViewSource;
	/** The state that the tab knows. A view begins as one that connects. */
	state: LiveState;
}

/**
 * The views of one tab.
 *
 * Invariants: the tab is sent at most one frame, and no other before it has shown that one. While it can't be seen, its views
 * are paused, and it is sent only that they are.
 */
export class Tab {
	readonly #port: Pick<Port<ToWorker, ToTab>, "post">;
	readonly #clock: Clock;
	readonly #views = new Map<number, OpenView>();
	readonly #changed = new Set<number>();
	#link: ServerLink | undefined;
	#leaveLink: (() => void) | undefined;
	#isVisible = true;
	#isReady = true;
	#flush: Timer | undefined;

	constructor(port: Pick<Port<ToWorker, ToTab>, "post">, clock: Clock) {
		this.#port = port;
		this.#clock = clock;
	}

	/** Follows the views over another link, from the beginning; over none with `undefined`. */
	use(link: ServerLink | undefined): void {
		const requests = [...this.#views].map(([view, { request }]) => [view, request] as const);
		for (const [view] of requests) {
			this.close(view);
		}
		this.#leaveLink?.();
		this.#link = link;
		this.#leaveLink = link?.subscribe(() => this.#changedAll());
		for (const [view, request] of link === undefined ? [] : requests) {
			this.open(view, request);
		}
	}

	open(view: number, request: ViewRequest): void {
		if (this.#link === undefined || this.#views.has(view) || this.#views.size === mostViews) {
			return;
		}
		const source = this.#sourceOf(this.#link, request, (isUrgent) =>
			this.#onChange(view, isUrgent),
		);
		this.#views.set(view, { request, source, state: { phase: "connecting" } });
		if (this.#isVisible) {
			source.start();
		} else {
			source.pause();
		}
	}

	reshape({ view, shape }: Extract<ToWorker, { kind: "reshape" }>): void {
		const open = this.#views.get(view);
		if (open?.request.kind === "table") {
			this.#views.set(view, { ...open, request: { ...open.request, ...shape } });
			open.source.reshape(shape);
		}
	}

	close(view: number): void {
		const open = this.#views.get(view);
		this.#views.delete(view);
		this.#changed.delete(view);
		open?.source.close();
	}

	/** Pauses all views of a tab that can't be seen, and continues them when it can. */
	show(isVisible: boolean): void {
		if (isVisible === this.#isVisible) {
			return;
		}
		this.#isVisible = isVisible;
		for (const { source } of this.#views.values()) {
			if (isVisible) {
				source.start();
			} else {
				source.pause();
			}
		}
	}

	/** The tab has shown the last frame. */
	ready(): void {
		this.#link?.endRest();
		this.#isReady = true;
		this.#flushSoon();
	}

	#sourceOf(link: ServerLink, request: ViewRequest, onChange: OnChange): ViewSource {
		switch (request.kind) {
			case "table":
				return new TableView(link, request, this.#clock, onChange);
			case "resource":
				return new ResourceView(link, request, () => onChange());
			case "overview":
				return new OverviewView(link.overview, () => onChange());
		}
	}

	#onChange(view: number, isUrgent = false): void {
		this.#changed.add(view);
		if (isUrgent && this.#isReady) {
			this.#flush?.cancel();
			this.#flush = undefined;
			this.#sendFrame();
			this.#link?.rest();
		} else {
			this.#flushSoon();
		}
	}

	#changedAll(): void {
		for (const view of this.#views.keys()) {
			this.#onChange(view);
		}
	}

	/** Waits for what arrives together. */
	#flushSoon(): void {
		if (this.#isReady && this.#changed.size > 0) {
			this.#flush ??= this.#clock.setTimer(0, () => {
				this.#flush = undefined;
				this.#sendFrame();
			});
		}
	}

	#sendFrame(): void {
		const updates: ViewUpdate[] = [];
		for (const view of this.#changed) {
			const open = this.#views.get(view);
			if (open !== undefined) {
				const { state } = open.source;
				const content = open.source.take();
				const isNewState = !sameState(state, open.state);
				open.state = state;
				if (isNewState || content !== undefined) {
					updates.push({ view, ...(isNewState && { state }), ...(content && { content }) });
				}
			}
		}
		this.#changed.clear();
		if (updates.length > 0) {
			this.#isReady = false;
			this.#port.post({ kind: "frame", updates });
		}
	}
}

function sameState(a: LiveState, b: LiveState): boolean {
	return JSON.stringify(a) === JSON.stringify(b);
}
