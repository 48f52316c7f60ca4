import type { LiveState } from "../live/live-state.ts";
import type { Tone } from "../model/tone.ts";
import { Age } from "./age.tsx";
import { Badge } from "./badge.tsx";

const tones: Readonly<Record<LiveState["phase"], Tone>> = {
	connecting: "plain",
	loading: "plain",
	// Not the color of a condition that holds: it says nothing about what is shown.
	live: "plain",
	lost: "bad",
	paused: "plain",
	refused: "bad",
};

/** Says how current what is shown is. */
export function LiveBadge({ state }: { readonly state: LiveState }) {
	return (
		<span role="status" data-phase={state.phase}>
			<Badge tone={tones[state.phase]}>
				<span className="dot" aria-hidden="true" />
				{textOf(state)}
			</Badge>
		</span>
	);
}

function textOf(state: LiveState) {
	switch (state.phase) {
		case "connecting":
			return "connecting";
		case "loading":
			return "loading";
		case "live":
			return "live";
		case "lost":
			return (
				<>
					connection lost, as of <Age ms={state.sinceMs} suffix=" ago" />
				</>
			);
		case "paused":
			return "paused";
		case "refused":
			return "not available";
	}
}
