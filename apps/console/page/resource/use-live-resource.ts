import { fromBinary } from "@bufbuild/protobuf";
import { type ID, type Resource, ResourceSchema } from "@plinth/proto";
import { useEffect, useState } from "react";
import { connecting } from "../live/live-client.ts";
import { useLive } from "../live/live-context.ts";
import type { LiveState } from "../live/live-state.ts";

/** A resource as it is now. */
export interface LiveResource {
	/** The newest version; the last one, if it was deleted. */
	readonly resource: Resource | undefined;
	/** Whether there is none with that name any more. */
	readonly isGone: boolean;
	readonly state: LiveState;
}

interface Shown {
	readonly resource: Resource | undefined;
	readonly isPresent: boolean;
	readonly state: LiveState;
}

const nothing: Shown = { resource: undefined, isPresent: false, state: connecting };

/** Follows one resource. @param id - names it; another object opens the view again. */
export function useLiveResource({ type, tenancy, name }: ID): LiveResource {
	const live = useLive();
	const [{ resource, isPresent, state }, setShown] = useState(nothing);
	useEffect(() => {
		setShown(nothing);
		if (type === undefined) {
			return undefined;
		}
		const { group, groupVersion, kind } = type;
		const { partition = "", namespace = "" } = tenancy ?? {};
		const request = {
			kind: "resource",
			type: { group, groupVersion, kind },
			tenancy: { partition, namespace },
			name,
		} as const;
		const view = live.open(request, {
			onUpdate: (update) =>
				setShown((before) => ({
					...before,
					...(update.state && { state: update.state }),
					...(update.content?.kind === "resource" && {
						resource: update.content.bytes && fromBinary(ResourceSchema, update.content.bytes),
						isPresent: update.content.isPresent,
					}),
				})),
		});
		return () => view.close();
	}, [live, type, tenancy, name]);
	return { resource, isGone: state.phase === "live" && !isPresent, state };
}
