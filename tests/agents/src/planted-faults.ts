import { WatchPosition } from "@plinth/forwarding/testing";

/** Faults of agents that the simulation must find. */
const ofAgents = [
	"moved watches lose what has changed meanwhile",
	"moved watches repeat events",
	"writes are sent again",
] as const;

/** Faults of peerings that the simulation must find. */
const ofPeerings = [
	"exports are not filtered",
	"copies are not removed",
	"copies are exported as originals",
] as const;

/** Faults that the simulation must find. */
export const plantedFaults = [...ofAgents, ...ofPeerings] as const;

/** One of them. */
export type PlantedFault = (typeof plantedFaults)[number];

/** Whether it is planted in the storage of peerings. */
export function isOfPeerings(
	fault: PlantedFault | undefined,
): fault is (typeof ofPeerings)[number] {
	return ofPeerings.some((each) => each === fault);
}

/** Plants a fault that is in the code of agents itself, until what is returned is called. */
export function plant(fault: PlantedFault | undefined): () => void {
	const { prototype } = WatchPosition;
	if (fault === "moved watches repeat events") {
		return replace(prototype, "continued", { value: () => {} });
	}
	if (fault === "moved watches lose what has changed meanwhile") {
		const { get } = Object.getOwnPropertyDescriptor(prototype, "continuation") ?? {};
		return replace(prototype, "continuation", {
			get(this: WatchPosition) {
				const continuation: WatchPosition["continuation"] = get?.call(this);
				return continuation.kind === "after"
					? { kind: "after", version: String(Number(continuation.version) + 1) }
					: continuation;
			},
		});
	}
	return () => {};
}

function replace(of: object, name: string, by: PropertyDescriptor): () => void {
	const before = Object.getOwnPropertyDescriptor(of, name) ?? {};
	Object.defineProperty(of, name, { ...by, configurable: true });
	return () => Object.defineProperty(of, name, before);
}
