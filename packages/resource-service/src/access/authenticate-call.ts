import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Access, Authorizer } from "@plinth/resource";

/** A header that carries a token, as an alternative to `authorization: Bearer …`. */
export const tokenHeader = "x-plinth-token";

/**
 * Authenticates a call by its token.
 *
 * @returns the rights of the caller.
 * @throws ConnectError Unauthenticated if the token is missing, malformed or unknown.
 */
export function authenticateCall(
	authorizer: Authorizer,
	context: Pick<HandlerContext, "requestHeader">,
): Access | Promise<Access> {
	return authorizer.tokenless ?? authorizer.authenticate(tokenOf(context));
}

/** The token of a call. @throws ConnectError Unauthenticated if the header is malformed. */
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
