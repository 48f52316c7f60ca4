import type { LiveState } from "../live-state.ts";
import type { ViewContent } from "../view.ts";
import type { OverviewFeed } from "./overview-feed.ts";
import type { ViewSource } from "./view-source.ts";

/** Follows the overview of the cluster. */
export class OverviewView implements ViewSource {
	readonly #feed: OverviewFeed;
	readonly #onChange: () => void;
	#leave: (() => void) | undefined;
	#pausedMs: number | undefined;
	#sent: Uint8Array | undefined;

	/** @param onChange - called when there may be something to take, or another state. */
	constructor(feed: OverviewFeed, onChange: () => void) {
		this.#feed = feed;
		this.#onChange = onChange;
	}

	get state(): LiveState {
		return this.#pausedMs === undefined
			? this.#feed.state
			: { phase: "paused", sinceMs: this.#pausedMs };
	}

	start(): void {
		this.#pausedMs = undefined;
		this.#leave ??= this.#feed.subscribe(this.#onChange);
		this.#onChange();
	}

	pause(): void {
		this.#leave?.();
		this.#leave = undefined;
		this.#pausedMs ??= this.#feed.heardMs;
		this.#onChange();
	}

	reshape(): void {}

	take(): ViewContent | undefined {
		const { bytes, samples } = this.#feed;
		if (bytes === this.#sent) {
			return undefined;
		}
		this.#sent = bytes;
		return { kind: "overview", bytes, samples };
	}

	close(): void {
		this.#leave?.();
		this.#leave = undefined;
	}
}
