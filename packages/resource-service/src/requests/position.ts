import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { authenticateCall } from "../access/authenticate-call.ts";
import { malformed } from "../errors/refusal.ts";
import type { ServiceContext } from "../service-context.ts";

/**
 * The header by which reads stay monotonic from one server of a cluster to another. Its value is the position of the
 * newest response that the caller has seen, from whichever server; `0` before the first.
 *
 *     caller ── x-plinth-not-before: 0 ───▶ server a     reads; x-plinth-position: 17
 *            ── x-plinth-not-before: 17 ──▶ server b     catches up to 17 if it lags, then reads
 */
export const notBeforeHeader = "x-plinth-not-before";

/**
 * The header of a response to a call with `x-plinth-not-before`: a version that the server has reached, and that is no
 * older than what the response shows. Failures have it too: NotFound shows that something is missing. It is lower than the
 * version that the call names only if the call was refused because of that. Positions are versions of the storage, which
 * are never issued twice, not even after a restore.
 */
export const positionHeader = "x-plinth-position";

/**
 * The header of a response to a call with `x-plinth-not-before`, if it is a List that has more pages: the part that the tokens
 * of all pages have in common. This server holds their snapshot, so that an agent requests them from it.
 */
export const pagesHeader = "x-plinth-pages";

/** The position that this call must not read before; `undefined` if it names none. */
function notBefore(call: HandlerContext): string | undefined {
	const position = call.requestHeader.get(notBeforeHeader);
	if (position === null || position === "") {
		return undefined;
	}
	if (!/^(0|[1-9]\d{0,15})$/.test(position)) {
		throw malformed(notBeforeHeader, `"${position.slice(0, 40)}" is not a version`);
	}
	return position;
}

/**
 * Waits until this server has reached the position that the call names.
 *
 * @throws ConnectError OutOfRange if the storage has not reached it; InvalidArgument if it is malformed.
 */
export async function reachPosition(
	{ backend }: Pick<ServiceContext, "backend">,
	call: HandlerContext,
): Promise<void> {
	const position = notBefore(call);
	if (position === undefined) {
		return;
	}
	const reached = await backend.catchUp(call.signal, position);
	if (Number(reached) < Number(position)) {
		call.responseHeader.set(positionHeader, reached);
		throw new ConnectError(
			`the storage is at version ${reached}, and has not reached version ${position} of ${notBeforeHeader}: it is another storage, or was restored; begin again with 0`,
			Code.OutOfRange,
		);
	}
}

/**
 * Waits until this server has reached the position that the call names, if the caller is known: nobody else makes it wait.
 *
 * @throws ConnectError Unauthenticated, or as `reachPosition`.
 */
export async function reachForCaller(context: Positioned, call: HandlerContext): Promise<void> {
	if (call.requestHeader.has(notBeforeHeader)) {
		await authenticateCall(context.authorizer, call);
		await reachPosition(context, call);
	}
}

/** Runs a unary method no earlier than at the position that the call names, and tells the position of the response. */
export function atPosition<T>(
	context: Positioned,
	call: HandlerContext,
	run: () => Promise<T>,
): Promise<T> {
	return call.requestHeader.has(notBeforeHeader) ? positioned(context, call, run) : run();
}

type Positioned = Pick<ServiceContext, "backend" | "authorizer">;

async function positioned<T>(
	context: Positioned,
	call: HandlerContext,
	run: () => Promise<T>,
): Promise<T> {
	await reachForCaller(context, call);
	try {
		return await run();
	} finally {
		// What this server has applied is no older than what the method has just read here. A write that is committed does
		// not fail because the storage has failed since.
		const position = await context.backend.catchUp(call.signal, "0").catch(() => undefined);
		if (position !== undefined) {
			call.responseHeader.set(positionHeader, position);
		}
	}
}
