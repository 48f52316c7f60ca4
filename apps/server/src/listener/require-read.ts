import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { type Authorizer, operatorRead, type TypeLike } from "@plinth/resource";
import { accessOf } from "@plinth/resource-service";

/**
 * Lets through only who may read resources of the type: for services that tell about the server
 * itself, whose rights policies give as if what they tell were resources.
 */
export function requireRead(authorizer: Authorizer, type: TypeLike): Interceptor {
	return (next) => async (request) => {
		const access = await accessOf(authorizer, { requestHeader: request.header });
		const decision = access.check(operatorRead, { type });
		if (decision.kind === "denied") {
			throw new ConnectError(decision.message, Code.PermissionDenied);
		}
		return next(request);
	};
}
