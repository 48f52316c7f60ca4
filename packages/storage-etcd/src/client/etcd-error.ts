import { Code, ConnectError } from "@connectrpc/connect";
import { NoResponse } from "./deadline.ts";

/**
 * What is known about a failed call.
 *
 * - `not-done`: it had no effect and never will; another attempt may succeed.
 * - `refused`: it will be refused again. It had no effect, unless etcd is over its quota: see `mayHaveApplied`.
 * - `unknown`: it may have had its effect, or may still have it.
 */
export type EtcdOutcome = "not-done" | "refused" | "unknown";

/** A call to etcd that failed. */
export class EtcdError extends Error {
	readonly outcome: EtcdOutcome;
	readonly code: Code;

	constructor(outcome: EtcdOutcome, message: string, code: Code, options?: ErrorOptions) {
		super(message, options);
		this.name = "EtcdError";
		this.outcome = outcome;
		this.code = code;
	}
}

/** A read or watch of revisions that etcd has compacted. */
export class RevisionCompacted extends Error {
	constructor() {
		super("etcd has compacted the revision");
		this.name = "RevisionCompacted";
	}
}

/** The codes with which etcd refuses a request: before executing it, but for that of an exceeded quota. */
const refusals: ReadonlySet<Code> = new Set([
	Code.InvalidArgument,
	Code.NotFound,
	Code.OutOfRange,
	Code.PermissionDenied,
	Code.ResourceExhausted,
	Code.Unimplemented,
]);

/** Classifies an error of etcd or of the transport for a request that was sent. */
export function etcdError(reason: unknown): Error {
	const error = ConnectError.from(
		reason,
		reason instanceof NoResponse ? Code.DeadlineExceeded : Code.Unknown,
	);
	const message = `etcd: ${error.rawMessage}${isOverQuota(error.rawMessage) ? overQuotaRemedy : ""}`;
	const make = (outcome: EtcdOutcome) =>
		new EtcdError(outcome, message, error.code, { cause: reason });
	if (error.rawMessage.includes("required revision has been compacted")) {
		return new RevisionCompacted();
	}
	if (isStaleToken(error) || error.rawMessage === "etcdserver: no leader") {
		return make("not-done");
	}
	// The transport uses some of these codes too, for broken streams.
	const fromServer = /^(etcdserver|grpc): /.test(error.rawMessage);
	return make(fromServer && refusals.has(error.code) ? "refused" : "unknown");
}

const overQuotaRemedy =
	": it accepts no writes until it is compacted and defragmented, and its alarm is disarmed";

function isOverQuota(message: string): boolean {
	return message.includes("database space exceeded");
}

/**
 * Whether etcd may have applied the request that it refuses. It checks its quota twice: before it accepts a transaction, and
 * again when it applies it. If its space was used up in between, it applies the transaction, and responds with the same
 * error (`quotaApplierV3.Txn`).
 */
export function mayHaveApplied({ code, message }: EtcdError): boolean {
	return code === Code.ResourceExhausted && isOverQuota(message);
}

/** Whether etcd refuses a request for what it is itself, and not for what the request is: it refuses others as well. */
export function refusesAll(error: EtcdError): boolean {
	const { code, message } = error;
	const hasTooMany = message.includes("etcdserver: too many requests");
	return mayHaveApplied(error) || (code === Code.ResourceExhausted && hasTooMany);
}

/** Whether a new token may help. */
export function isStaleToken(error: ConnectError): boolean {
	return (
		error.code === Code.Unauthenticated ||
		error.rawMessage.includes("revision of auth store is old")
	);
}
