import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
	Code,
	ConnectError,
	type HandlerContext,
	type MethodImpl,
	type ServiceImpl,
} from "@connectrpc/connect";
import type { AgentCacheService } from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import {
	type Authorizer,
	gvkKey,
	type ResourceType,
	type TypeLike,
	type TypeRegistry,
} from "@plinth/resource";
import {
	authenticateCall,
	describedPolicy,
	requireWholeType,
	tokenOf,
} from "@plinth/resource-service";
import { type Clock, linkedSignal, sleep } from "@plinth/runtime";
import { type StorageBackend, StorageUnavailable, wildcard } from "@plinth/storage";
import { exchangeOf } from "../listener/exchange.ts";

/** Options of `createAgentCacheService`. */
export interface AgentCacheServiceOptions {
	readonly backend: Pick<StorageBackend, "catchUp" | "snapshot">;
	readonly registry: TypeRegistry;
	readonly authorizer: Authorizer;
	/** The names by which clients may call the server; `undefined` if any will do. */
	readonly allowedHosts: ReadonlySet<string> | undefined;
	/** The region of the server's deployment, if it is part of one. */
	readonly region: string | undefined;
	readonly clock: Clock;
}

/** An agent trusts what it knows of a token for 10 s: three messages may be lost. In milliseconds. */
const repeatMs = 3_000;

/** Tells agents what they must know to serve reads from caches. Only calls on the port for agents are served. */
export function createAgentCacheService(
	options: AgentCacheServiceOptions,
): ServiceImpl<typeof AgentCacheService> {
	return {
		describeType: (request, call) => describeType(options, request, call),
		followAccess: (_, call) => followAccess(options, call),
	};
}

type Methods = typeof AgentCacheService.method;

const describeType = async (
	{ backend, registry, authorizer, allowedHosts, region = "" }: AgentCacheServiceOptions,
	{ type: named, notBefore }: Parameters<MethodImpl<Methods["describeType"]>>[0],
	call: HandlerContext,
) => {
	requireAgent(call);
	const access = await authenticateCall(authorizer, call);
	const type = registeredType(registry, named);
	requireWholeType(type, access);
	if (!/^\d{0,16}$/.test(notBefore)) {
		throw new ConnectError("not_before is not a version", Code.InvalidArgument);
	}
	try {
		await backend.catchUp(call.signal, notBefore === "" ? undefined : notBefore);
		const query = {
			type: type.type,
			tenancy: { partition: wildcard, namespace: wildcard },
			namePrefix: "",
		};
		const { version, familyVersion } = await backend.snapshot(query);
		if (Number(version) < Number(notBefore)) {
			throw new ConnectError(
				`the storage is at version ${version}, and has not reached version ${notBefore}`,
				Code.OutOfRange,
			);
		}
		return {
			scope: type.scope,
			version,
			typeVersion: familyVersion,
			region,
			...(allowedHosts && { allowedHosts: { names: [...allowedHosts] } }),
		};
	} catch (failure) {
		throw failure instanceof StorageUnavailable
			? new ConnectError(failure.message, Code.Unavailable)
			: failure;
	}
};

/** @throws ConnectError NotFound if it is not registered. */
function registeredType(registry: TypeRegistry, named: TypeLike | undefined): ResourceType {
	const type = named && registry.get(named);
	if (type === undefined) {
		const name = named === undefined ? "" : ` ${gvkKey(named)}`;
		throw new ConnectError(`resource type${name} is not registered`, Code.NotFound);
	}
	return type;
}

async function* followAccess(
	{ authorizer, clock }: AgentCacheServiceOptions,
	call: HandlerContext,
): ReturnType<MethodImpl<Methods["followAccess"]>> {
	requireAgent(call);
	const startedMs = clock.monotonic();
	const access = await authenticateCall(authorizer, call);
	const { subject, rules } = describedPolicy(access);
	const token = tokenOf(call);
	const { ended } = access;
	using end = linkedSignal(call.signal, ...(ended === undefined ? [] : [ended]));
	for (let isFirst = true; ; isFirst = false) {
		// What is sent is true now, not when it arrives.
		throwIfEnded(ended);
		const elapsed = durationFromMs(Math.floor(clock.monotonic() - startedMs));
		const expiresMs = token === undefined ? undefined : authorizer.expiryOf?.(token);
		yield {
			elapsed,
			...(isFirst && {
				policy: {
					subject,
					rules: rules.map(({ operations, ...rule }) => ({ operations: [...operations], ...rule })),
				},
			}),
			...(expiresMs !== undefined && {
				expiresIn: durationFromMs(Math.max(0, Math.floor(expiresMs - clock.now()))),
			}),
		};
		try {
			await sleep(clock, repeatMs, end.signal);
		} catch (failure) {
			throwIfEnded(ended);
			throw failure;
		}
	}
}

function throwIfEnded(ended: AbortSignal | undefined): void {
	if (ended?.aborted) {
		throw new ConnectError(
			"the token has expired, was revoked, or has other rights",
			Code.Unauthenticated,
		);
	}
}

/** @throws ConnectError Unimplemented, as if the service did not exist, unless an agent calls on its own port. */
function requireAgent(call: HandlerContext): void {
	if (!exchangeOf(call.values).isOfAgent) {
		throw new ConnectError(
			"AgentCacheService is served on the port for agents only",
			Code.Unimplemented,
		);
	}
}
