import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Access, Authorizer } from "@plinth/resource";
import { decodeFence, type Fence } from "@plinth/runtime";
import type { Consistency } from "@plinth/storage";
import { malformed } from "../errors/refusal.ts";

/** The header that asks for a linearizable answer. */
export const consistencyHeader = "x-plinth-consistency-mode";

/** The header that carries the token of a lease into a commit. */
export const fenceHeader = "x-plinth-fence";

/** The header that carries a token, beside `authorization: Bearer …`. */
export const tokenHeader = "x-plinth-token";

/** How fresh the answer to this call must be. */
export function consistencyOf(context: HandlerContext): Consistency {
	const mode = context.requestHeader.get(consistencyHeader);
	if (mode === null || mode === "" || mode === "default") {
		return "eventual";
	}
	if (mode === "consistent") {
		return "strong";
	}
	throw malformed(consistencyHeader, `"${mode}" is not "consistent"`);
}

/** The fence that this call carries, or `undefined`. */
export function fenceOf(context: HandlerContext): Fence | undefined {
	const header = context.requestHeader.get(fenceHeader);
	if (header === null) {
		return undefined;
	}
	const fence = decodeFence(header);
	if (fence === undefined) {
		throw malformed(fenceHeader, "is not a fence");
	}
	return fence;
}

/**
 * What the caller may do.
 *
 * @throws ConnectError Unauthenticated where the token is missing, malformed or not known.
 */
export function authenticateCall(
	authorizer: Authorizer,
	context: Pick<HandlerContext, "requestHeader">,
): Access | Promise<Access> {
	return authorizer.tokenless ?? authorizer.authenticate(tokenOf(context));
}

/** @throws ConnectError Unauthenticated where it is malformed. */
export function tokenOf(context: Pick<HandlerContext, "requestHeader">): string | undefined {
	const bearer = context.requestHeader.get("authorization");
	if (bearer === null) {
		return context.requestHeader.get(tokenHeader) ?? undefined;
	}
	const [scheme, token, ...rest] = bearer.split(" ");
	if (scheme?.toLowerCase() !== "bearer" || !token || rest.length > 0) {
		throw new ConnectError("authorization must be: Bearer <token>", Code.Unauthenticated);
	}
	return token;
}
