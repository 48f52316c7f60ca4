import type { DescMessage } from "@bufbuild/protobuf";
import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import {
	type Access,
	type Authorizer,
	type Caller,
	CallerToken,
	type Decision,
	type Decoded,
	DecodeError,
	decodeShared,
	denialOf,
	type NamedTarget,
	operatorRead,
	operatorReference,
	type ResourceType,
	type TypeLike,
	type TypeRegistry,
	tenancyOf,
	typeOf,
} from "@plinth/resource";
import { tokenOf } from "./authenticate-call.ts";
import { decideRead, decideReference, mayRead, noDecision } from "./authorization.ts";

/** The caller of a request, with the access that its token gives. */
class RequestCaller implements Caller {
	readonly #registry: TypeRegistry;
	readonly #access: Access;
	readonly #readToken: () => string | undefined;

	constructor(registry: TypeRegistry, access: Access, readToken: () => string | undefined) {
		this.#registry = registry;
		this.#access = access;
		this.#readToken = readToken;
	}

	get token(): CallerToken {
		return new CallerToken(this.#readToken());
	}

	/**
	 * A target requires the right to read it and, if it is in another namespace or partition, the right to
	 * reference it. If either is denied by name, the stored resource does not matter.
	 */
	decideReference(target: NamedTarget, stored?: Resource): Decision {
		// The hooks of a group version only see data of that version, whichever version names the target.
		const type = this.#typeOf(stored?.id?.type ?? target.type);
		if (type === undefined) {
			return this.#decideUnregistered(target);
		}
		const id = idOf(type, target);
		const decoded = stored && decodedAs(type, stored);
		if (decoded === "malformed") {
			return noDecision(id);
		}
		const read = decideRead(type, this.#access, id, decoded);
		if (denialOf(read) !== undefined || !target.isCrossTenancy) {
			return decided(read, id, stored);
		}
		const reference = decideReference(type, this.#access, id, decoded);
		const isAllowed = denialOf(reference) === undefined && reference.kind === "allowed";
		return decided(isAllowed ? read : reference, id, stored);
	}

	mayRead(resource: Resource): boolean {
		const { id } = resource;
		if (id?.type === undefined) {
			return false;
		}
		const type = this.#registry.get(id.type);
		return type === undefined
			? this.#decideUnregistered({ ...id, type: id.type, tenancy: id.tenancy ?? {} }).kind ===
					"allowed"
			: mayRead(type, this.#access, resource, id);
	}

	#decideUnregistered({
		type,
		tenancy,
		name,
		isCrossTenancy,
	}: Partial<NamedTarget> & Named): Decision {
		const target = { type, tenancy, name };
		const read = this.#access.check(operatorRead, target);
		return denialOf(read) !== undefined || !isCrossTenancy
			? read
			: this.#access.check(operatorReference, target);
	}

	/** The type with that name. If that group version is not registered, another version of the same kind. */
	#typeOf(type: TypeLike): ResourceType | undefined {
		return (
			this.#registry.get(type) ??
			this.#registry
				.all()
				.find(({ type: { group, kind } }) => group === type.group && kind === type.kind)
		);
	}
}

type Named = Omit<NamedTarget, "isCrossTenancy">;

function idOf(type: ResourceType, { tenancy, name }: NamedTarget): ID {
	return {
		$typeName: "plinth.resource.v1.ID",
		...{ uid: "", name, type: typeOf(type.type), tenancy: tenancyOf(tenancy) },
	};
}

function decodedAs(type: ResourceType, stored: Resource): Decoded<DescMessage> | "malformed" {
	try {
		return decodeShared(type, stored);
	} catch (error) {
		if (error instanceof DecodeError) {
			return "malformed";
		}
		throw error;
	}
}

/** A hook that has seen the stored resource must decide. */
function decided(decision: Decision, id: ID, stored: Resource | undefined): Decision {
	return decision.kind === "needs-resource" && stored !== undefined ? noDecision(id) : decision;
}

/** The caller on whose behalf the call is made; `undefined` for the deployment itself. */
export function callerOf(
	registry: TypeRegistry,
	access: Access,
	call: HandlerContext,
): Caller | undefined {
	return access.isDeployment
		? undefined
		: new RequestCaller(registry, access, () => sentToken(call));
}

/** The token of a call; none if it is malformed, which only a server that ignores tokens accepts. */
function sentToken(call: HandlerContext): string | undefined {
	try {
		return tokenOf(call);
	} catch (error) {
		if (error instanceof ConnectError) {
			return undefined;
		}
		throw error;
	}
}

/** Authenticates callers of other deployments by the tokens that those deployments forward. */
export interface CallerAuthenticator {
	/** Whether this deployment ignores tokens and allows everything. */
	readonly isOpen: boolean;
	/**
	 * The caller with that token.
	 *
	 * @throws ConnectError Unauthenticated if the token is missing, unknown or expired.
	 */
	authenticate(token: string | undefined): Promise<Caller>;
}

/** Authenticates callers of other deployments with the authorizer of this one. */
export function createCallerAuthenticator(
	registry: TypeRegistry,
	authorizer: Authorizer,
): CallerAuthenticator {
	return {
		isOpen: authorizer.tokenless !== undefined,
		async authenticate(token) {
			const access = authorizer.tokenless ?? (await authorizer.authenticate(token));
			return new RequestCaller(registry, access, () => token);
		},
	};
}
