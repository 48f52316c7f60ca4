import type { Interceptor } from "@connectrpc/connect";
import { type Authorizer, operatorRead, type TypeLike } from "@plinth/resource";
import { authenticateCall, enforce } from "@plinth/resource-service";

/**
 * Admits only callers who may read resources of the type. It protects services that report on the server itself, to
 * which policies grant access as if their reports were resources. The reports have no names, so a rule for a prefix
 * of names does not grant access.
 */
export function requireRead(authorizer: Authorizer, type: TypeLike): Interceptor {
	return (next) => async (request) => {
		const access = await authenticateCall(authorizer, { requestHeader: request.header });
		enforce(access.check(operatorRead, { type, name: "" }));
		return next(request);
	};
}
