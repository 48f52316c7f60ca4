import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { type Authorizer, operatorRead, type TypeLike } from "@plinth/resource";
import { authenticateCall, enforce } from "@plinth/resource-service";

/**
 * Admits only callers who may read resources of the type. It protects services that report on the server itself, to
 * which policies grant access as if their reports were resources. The reports have no names, so a rule for a prefix
 * of names does not grant access.
 *
 * @param exempt - methods that decide by themselves who may call them.
 */
export function requireRead(
	authorizer: Authorizer,
	type: TypeLike,
	exempt: readonly DescMethod[] = [],
): Interceptor {
	return (next) => async (request) => {
		if (exempt.includes(request.method)) {
			return next(request);
		}
		const access = await authenticateCall(authorizer, { requestHeader: request.header });
		enforce(access.check(operatorRead, { type, name: "" }));
		return next(request);
	};
}

/**
 * Admits to a method only callers that have the right to an operation on the type. The calls of other methods of the
 * service pass. As for `requireRead`, a rule for a prefix of names does not grant it.
 */
export function requireFor(
	method: DescMethod,
	operation: string,
	authorizer: Authorizer,
	type: TypeLike,
): Interceptor {
	return (next) => async (request) => {
		if (request.method === method) {
			const access = await authenticateCall(authorizer, { requestHeader: request.header });
			enforce(access.check(operation, { type, name: "" }));
		}
		return next(request);
	};
}
