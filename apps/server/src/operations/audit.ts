import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { type ID, ResourceService } from "@plinth/proto";
import { PeerExchangeService } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { gvkKey } from "@plinth/resource";
import type { CallObserver } from "@plinth/rpc-server";
import type { Clock, Logger } from "@plinth/runtime";
import { callerOf, type RefusedCall } from "../limits/call-gate.ts";
import { type Rate, RateLimiter } from "../limits/rate-limiter.ts";
import { wasRefusedWhileRunning } from "../limits/refused-while-running.ts";

/** The methods that store nothing: one checks a write without making it, the other one lets a stream go on. */
const withoutWrites: ReadonlySet<DescMethod> = new Set([
	ResourceService.method.mutateAndValidate,
	PeerExchangeService.method.acknowledge,
]);

/** Whether a call of the method can change something, and so is audited. */
function isWrite(method: DescMethod): boolean {
	return (
		method.methodKind === "unary" &&
		method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS &&
		!withoutWrites.has(method)
	);
}

/**
 * Logs one line per write: the caller, the target and the result. Never the token, the written data, or messages of
 * errors, which may repeat the data.
 */
export function auditWrites(logger: Logger): CallObserver {
	return {
		started({ method, values }, message) {
			if (message === undefined || !isWrite(method)) {
				return undefined;
			}
			return {
				ended(failure) {
					if (wasRefusedWhileRunning(values)) {
						// As a call that a gate refuses: `auditRefusals`.
						return;
					}
					const subject = callerOf(values)?.subject;
					const result = failure === undefined ? "ok" : resultOf(failure);
					const audit = { subject, method: nameOf(method), ...target(message), result };
					logger.info({ audit }, "write");
				},
			};
		},
	};
}

/**
 * The rate of lines about callers without a valid token: ten per second on average, a hundred after an idle period. Any
 * client can cause them, and they must neither fill the disk nor hide other lines.
 */
const unauthenticatedRate: Rate = { perSecond: 10, burst: 100 };

/** Options of `auditRefusals`. */
export interface RefusalAuditOptions {
	readonly logger: Logger;
	readonly clock: Clock;
	/** Called for each line that was suppressed. */
	readonly onSuppressed: () => void;
}

/**
 * Logs writes that were refused before they were read. Lines about callers without a valid token are limited in rate;
 * the next line contains the number of suppressed ones.
 */
export function auditRefusals(options: RefusalAuditOptions): (refused: RefusedCall) => void {
	const { logger, clock, onSuppressed } = options;
	const unauthenticated = new RateLimiter(unauthenticatedRate, clock);
	let suppressed = 0;
	return ({ call, subject, error }) => {
		if (!isWrite(call.method)) {
			return;
		}
		const audit = { subject, method: nameOf(call.method), result: resultOf(error) };
		if (subject !== undefined) {
			logger.info({ audit }, "write");
		} else if (!unauthenticated.take("")) {
			suppressed += 1;
			onSuppressed();
		} else {
			logger.info({ audit, ...(suppressed > 0 && { suppressed }) }, "write");
			suppressed = 0;
		}
	};
}

/**
 * Logs one line when a stream has ended: the caller, the method and the result. For streams that matter as much as a
 * write.
 */
export async function* auditStream<T>(
	logger: Logger,
	call: HandlerContext,
	messages: AsyncIterable<T>,
): AsyncGenerator<T> {
	let isLogged = false;
	const log = (result: string) => {
		if (!isLogged) {
			isLogged = true;
			const subject = callerOf(call.values)?.subject;
			logger.info({ audit: { subject, method: nameOf(call.method), result } }, "stream");
		}
	};
	// If the client is gone, the generator may not be resumed.
	const canceled = () => log(resultOf(call.signal.reason));
	call.signal.addEventListener("abort", canceled, { once: true });
	try {
		yield* messages;
		log("ok");
	} catch (failure) {
		log(resultOf(failure));
		throw failure;
	} finally {
		log("canceled");
		call.signal.removeEventListener("abort", canceled);
	}
}

function nameOf(method: DescMethod): string {
	return `${method.parent.typeName}/${method.name}`;
}

/** The code of a failure, as `permission_denied`. */
export function resultOf(failure: unknown): string {
	const code = failure instanceof ConnectError ? failure.code : Code.Internal;
	// A handler may throw a number that is not a code.
	return (Code[code] ?? "Unknown").replace(/(?<=.)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}

/** The name of the target. Names are truncated, because callers choose them. */
function target(message: object): Record<string, string> {
	const id = idOf(message);
	if (id === undefined) {
		return {};
	}
	const { type, tenancy, name, region } = id;
	return {
		...(type && { type: cut(gvkKey(type)) }),
		...(tenancy?.partition && { partition: cut(tenancy.partition) }),
		...(tenancy?.namespace && { namespace: cut(tenancy.namespace) }),
		name: cut(name),
		...(region && { region: cut(region) }),
	};
}

const longest = 128;

function cut(text: string): string {
	return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

function idOf(message: object): ID | undefined {
	if ("id" in message && isId(message.id)) {
		return message.id;
	}
	if ("resource" in message && typeof message.resource === "object" && message.resource !== null) {
		return idOf(message.resource);
	}
	return undefined;
}

function isId(value: unknown): value is ID {
	return (
		typeof value === "object" &&
		value !== null &&
		"$typeName" in value &&
		value.$typeName === "plinth.resource.v1.ID"
	);
}
