import {
	Code,
	ConnectError,
	type ContextValues,
	createContextKey,
	type HandlerContext,
} from "@connectrpc/connect";
import type { Access, Authorizer } from "@plinth/resource";

/** A header that carries a token, as an alternative to `authorization: Bearer …`. */
export const tokenHeader = "x-plinth-token";

/** An access, and the authorizer that gave it. */
interface KnownAccess {
	readonly authorizer: Authorizer;
	readonly access: Access;
}

const knownAccess = createContextKey<KnownAccess | undefined>(undefined, {
	description: "the access of the caller, as it was authenticated before",
});

/**
 * Remembers the access of a call, so that `authenticateCall` does not check the token again. It still does if the access
 * does not tell when it ends.
 */
export function rememberAccess(
	values: ContextValues,
	authorizer: Authorizer,
	access: Access,
): void {
	if (access.ended !== undefined) {
		values.set(knownAccess, { authorizer, access });
	}
}

/**
 * Authenticates a call by its token.
 *
 * @returns the rights of the caller.
 * @throws ConnectError Unauthenticated if the token is missing, malformed or unknown.
 */
export function authenticateCall(
	authorizer: Authorizer,
	context: Pick<HandlerContext, "requestHeader"> & Partial<Pick<HandlerContext, "values">>,
): Access | Promise<Access> {
	if (authorizer.tokenless !== undefined) {
		return authorizer.tokenless;
	}
	const known = context.values?.get(knownAccess);
	return known?.authorizer === authorizer && known.access.ended?.aborted === false
		? known.access
		: authorizer.authenticate(tokenOf(context));
}

/** The token of a call. @throws ConnectError Unauthenticated if the header is malformed. */
export function tokenOf(context: {
	readonly requestHeader: Pick<Headers, "get">;
}): string | undefined {
	const bearer = context.requestHeader.get("authorization");
	if (bearer === null) {
		return context.requestHeader.get(tokenHeader) ?? undefined;
	}
	const start = "bearer ".length;
	const isBearer = bearer.slice(0, start).toLowerCase() === "bearer ";
	if (!isBearer || bearer.length === start || bearer.includes(" ", start)) {
		throw new ConnectError("authorization must be: Bearer <token>", Code.Unauthenticated);
	}
	return bearer.slice(start);
}
