import { firstRegions } from "@plinth/example-regions/plan";
import { type Key, type Kind, keyOf, type Place } from "../history/history.ts";

/** The description of a kind. */
interface KindOfExample {
	readonly group: "iam" | "devices";
	/** The number of names in each region. */
	readonly names: number;
	/** The kinds that its fields reference. */
	readonly fields: Readonly<Record<string, Kind>>;
}

/** The kinds of the example. */
export const kinds: Readonly<Record<Kind, KindOfExample>> = {
	Project: { group: "iam", names: 5, fields: {} },
	AccessKey: { group: "iam", names: 5, fields: {} },
	Rack: { group: "devices", names: 6, fields: { project: "Project" } },
	Device: {
		group: "devices",
		names: 10,
		fields: { rack: "Rack", lentTo: "Project", standby: "Device" },
	},
};

/** The kind of that name. */
export function kindOf(name: string): Kind {
	switch (name) {
		case "Project":
		case "AccessKey":
		case "Rack":
		case "Device":
			return name;
		default:
			throw new Error(`unknown kind ${name}`);
	}
}

/** All names that clients use. */
export const places: readonly Place[] = firstRegions.flatMap((region) =>
	(["Project", "AccessKey", "Rack", "Device"] as const).flatMap((kind) =>
		Array.from({ length: kinds[kind].names }, (_, i) => ({
			kind,
			region,
			name: `${kind.toLowerCase()}-${i}`,
		})),
	),
);

/** The places, by their keys. */
export const placeOf: ReadonlyMap<Key, Place> = new Map(places.map((each) => [keyOf(each), each]));

/** The deployment that stores a place, for example `devices-us-west2`. */
export function deploymentOf({ kind, region }: Pick<Place, "kind" | "region">): string {
	return `${kinds[kind].group}-${region}`;
}
