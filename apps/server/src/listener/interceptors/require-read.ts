import type { Interceptor } from "@connectrpc/connect";
import { type Authorizer, operatorRead, type TypeLike } from "@plinth/resource";
import { authenticateCall, enforce } from "@plinth/resource-service";

/**
 * Lets through only who may read resources of the type: for services that tell about the server
 * itself, whose rights policies give as if what they tell were resources. They have no name: a rule for a
 * prefix of names does not open them.
 */
export function requireRead(authorizer: Authorizer, type: TypeLike): Interceptor {
	return (next) => async (request) => {
		const access = await authenticateCall(authorizer, { requestHeader: request.header });
		enforce(access.check(operatorRead, { type, name: "" }));
		return next(request);
	};
}
