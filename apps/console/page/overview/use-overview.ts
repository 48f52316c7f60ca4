import { fromBinary } from "@bufbuild/protobuf";
import {
	type Overview,
	OverviewSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { useEffect, useState } from "react";
import { connecting } from "../live/live-client.ts";
import { useLive } from "../live/live-context.ts";
import type { LiveState } from "../live/live-state.ts";
import type { OverviewSample } from "./overview-sample.ts";

/** The newest overview, and the figures of the last minutes. */
export interface LiveOverview {
	readonly overview: Overview | undefined;
	readonly samples: readonly OverviewSample[];
	readonly state: LiveState;
}

/** The overview of the cluster, live. */
export function useOverview(): LiveOverview {
	const live = useLive();
	const [shown, setShown] = useState<LiveOverview>({
		...{ overview: undefined, samples: [], state: connecting },
	});
	useEffect(() => {
		const view = live.open(
			{ kind: "overview" },
			{
				onUpdate: ({ state, content }) =>
					setShown((before) => ({
						...before,
						...(state && { state }),
						...(content?.kind === "overview" && {
							overview: content.bytes && fromBinary(OverviewSchema, content.bytes),
							samples: content.samples,
						}),
					})),
			},
		);
		return () => view.close();
	}, [live]);
	return shown;
}
