import type { ID } from "@plinth/proto";

/** What happened to a resource. */
export interface EventInit {
	/** One word in upper camel case, as in `DeletionRefused`, of up to 128 letters and digits: programs match it. */
	readonly reason: string;
	/** For people. Cut after 1,000 characters. */
	readonly message: string;
	/** `normal` by default; `warning` if somebody may have to do something. */
	readonly severity?: "normal" | "warning";
}

/** An event, and where it comes from. */
export interface EventRecord extends EventInit {
	readonly resource: ID;
	/** The name of a controller, or `plinth`. */
	readonly source: string;
}

/**
 * Records events. Those with the same resource, source, reason and severity are the same event, which has occurred again:
 * it is counted, and its message is the newest one.
 */
export interface EventRecorder {
	/** Returns at once, and does not fail. The event is stored later. */
	record(event: EventRecord): void;
}

/** A recorder that records nothing. */
export const noEvents: EventRecorder = { record() {} };

const reasonPattern = /^[A-Z][A-Za-z0-9]{0,127}$/;

/** What is wrong with an event, or `undefined`. */
export function eventProblem({ reason, message, severity }: EventInit): string | undefined {
	if (typeof reason !== "string" || !reasonPattern.test(reason)) {
		return `the reason of an event is one word in upper camel case, as in Provisioned, got ${JSON.stringify(reason)}`;
	}
	if (typeof message !== "string" || message.trim() === "") {
		return `the message of the event ${reason} is empty`;
	}
	if (severity !== undefined && severity !== "normal" && severity !== "warning") {
		return `the severity of the event ${reason} is normal or warning, got ${JSON.stringify(severity)}`;
	}
	return undefined;
}
