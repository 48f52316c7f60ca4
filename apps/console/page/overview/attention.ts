import {
	Phase,
	PhaseSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type {
	ControllerOverview,
	Overview,
	TypeOverview,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import type { Tone } from "../model/tone.ts";

/** Whether a controller fails, does not run although it should, or has reconciles that take too long. */
function needsAttention(overview: ControllerOverview): boolean {
	const { controller, failuresPerSecond, stillRunning } = overview;
	const failing = controller?.requests?.failing ?? 0;
	const runsWell = controller !== undefined && phaseTone(controller.phase) === "good";
	return !runsWell || failing > 0 || failuresPerSecond > 0 || stillRunning > 0;
}

/** Whether a phase is one in which all is well: it runs, or another server does. */
export function phaseTone(phase: Phase): Tone {
	return phase === Phase.RUNNING || phase === Phase.WAITING_FOR_LEASE ? "good" : "unsure";
}

/** A phase in words. */
export function phaseName(phase: Phase): string {
	return (PhaseSchema.value[phase]?.localName ?? "").toLowerCase().replaceAll("_", " ");
}

/** How many resources of a type there are. */
export interface CountedType {
	/** As in `catalog.v1.Service`. */
	readonly type: string;
	readonly count: number;
}

/** What needs attention in an overview. */
export interface Attention {
	readonly servers: number;
	readonly controllers: number;
	/** The types with false conditions, those with the most first. */
	readonly falseConditions: readonly CountedType[];
	/** The types with stale conditions, those with the most first. */
	readonly staleConditions: readonly CountedType[];
	/** The types with resources that are being deleted, those with the most first. */
	readonly deletions: readonly CountedType[];
}

/** What needs attention in an overview. */
export function attentionOf({ servers, controllers, types }: Overview): Attention {
	return {
		servers: servers.filter(({ server }) => server?.missing !== "").length,
		controllers: controllers.filter(needsAttention).length,
		falseConditions: countedTypes(types, ({ withFalseCondition }) => withFalseCondition),
		staleConditions: countedTypes(types, ({ withStaleCondition }) => withStaleCondition),
		deletions: countedTypes(types, ({ beingDeleted = 0n }) => beingDeleted),
	};
}

/** The types with the most false conditions first, then those with stale ones, with deletions, then the busiest. */
export function typesByAttention(types: readonly TypeOverview[]): readonly TypeOverview[] {
	return types.toSorted(
		(a, b) =>
			Number(b.withFalseCondition - a.withFalseCondition) ||
			Number(b.withStaleCondition - a.withStaleCondition) ||
			Number((b.beingDeleted ?? 0n) - (a.beingDeleted ?? 0n)) ||
			b.writesPerSecond - a.writesPerSecond ||
			(a.type < b.type ? -1 : 1),
	);
}

/** The controllers that need attention first, and then in their order. */
export function controllersByAttention(
	controllers: readonly ControllerOverview[],
): readonly ControllerOverview[] {
	return controllers.toSorted((a, b) => Number(needsAttention(b)) - Number(needsAttention(a)));
}

/** The types for which a figure is not 0, the highest first. */
function countedTypes(
	types: readonly TypeOverview[],
	figure: (type: TypeOverview) => bigint,
): readonly CountedType[] {
	return types
		.map((each) => ({ type: each.type, count: Number(figure(each)) }))
		.filter((each) => each.count > 0)
		.sort((a, b) => b.count - a.count || (a.type < b.type ? -1 : 1));
}

/** The kind of a type, as in `Service` for `catalog.v1.Service`. */
export function kindOf(type: string): string {
	return type.slice(type.lastIndexOf(".") + 1);
}
