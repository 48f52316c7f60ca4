import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	type AuthorizeReferencesRequest,
	type CheckReferencesRequest,
	type Route,
	RouteSchema,
	type SchemaMixinService,
	type WatchImportedServiceDeletionsRequest,
	WatchImportedServiceDeletionsResponseSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { Deployed } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Exhausted, Refused, StorageUnavailable } from "@plinth/storage";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { localHolders } from "../plan/local-holders.ts";
import { acceptReport } from "../registry/meta-recovery.ts";
import { schemaForEstablishments } from "../schema/descriptor-record.ts";
import { recordFollower } from "../schema/followers.ts";
import { announcedAddresses } from "../shadow/endpoint-addresses.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import { deployedOf, strictest } from "../shadow/shadow.ts";
import { recordEstablished } from "../succession/succession.ts";
import { decideTargets } from "./authorize-targets.ts";
import { checkOwnerships } from "./check-ownership.ts";
import { confirmSource } from "./confirm-sources.ts";
import { type DeletionEvent, deletionFeed } from "./deletion-feed.ts";
import { refusalOfPredecessor } from "./dropped-deployments.ts";
import { encodeEndpoints, endpointsHeader } from "./endpoints-header.ts";
import { establishSources } from "./establish-sources.ts";
import { finalDecisions, type Question } from "./final-decisions.ts";
import { receivedCaller, shownTo } from "./forwarded-callers.ts";
import { forwardedHeader } from "./hints-channel.ts";
import { currentDecision, type HolderDecision } from "./holder-decision.ts";
import {
	assertSpoken,
	encodeProtocolVersions,
	protocolHeader,
	protocolVersions,
} from "./protocol-versions.ts";
import { assertServed } from "./served-versions.ts";

/** The maximum number of questions, targets or hints per request. */
const requestLimit = 1_000;

/** The service by which other deployments reach this one. */
export function createSchemaMixinService(
	context: ConstraintContext,
): ServiceImpl<typeof SchemaMixinService> {
	return {
		establishReferences: ({ route, targets, caller, schema }, call) =>
			respond(context, call, { route, count: targets.length }, async (from) => {
				const onBehalfOf = await receivedCaller(context, from, caller);
				const isOfUser = caller?.caller.case === "user";
				const signal = isPlanted("establish for callers that have gone") ? undefined : call.signal;
				const options = { isOfUser, schema, signal };
				return {
					established: await establishSources(context, from, targets, onBehalfOf, options),
				};
			}),

		authorizeReferences: (request, call) =>
			respond(context, call, { route: request.route, count: request.targets.length }, (from) =>
				authorizeReferences(context, from, request),
			),

		confirmBlockades: ({ route, blockades }, call) =>
			respond(context, call, { route, count: blockades.length }, async (from) => {
				await Promise.all(blockades.map((blockade) => confirmSource(context, from, blockade)));
				return {};
			}),

		checkReferences: (request, call) =>
			respond(
				context,
				call,
				{ route: request.route, count: request.questions.length },
				async (from) => {
					const decisions = await checkReferences(context, from, request, call.signal);
					return { answers: decisions.map(decisionMessage) };
				},
			),

		reportReleases: ({ route, releases }, call) =>
			respond(context, call, { route, count: releases.length }, async (from) => {
				const isForwarded = call.requestHeader.has(forwardedHeader);
				context.hints.reported({ route: routeFrom(context, from), releases }, isForwarded);
				return {};
			}),

		forwardDeletions: ({ route, deletions }, call) =>
			respond(context, call, { route, count: deletions.length }, async (from) => {
				assertSameDeployment(context, from);
				for (const { deploymentUid, target, targetUid } of deletions) {
					if (target !== undefined) {
						context.hints.forwarded({ deploymentUid, target, targetUid });
					}
				}
				return {};
			}),

		reportEstablished: ({ route }, call) =>
			respond(context, call, { route }, async (from) => {
				await recordEstablished(context, from.uid);
				return {};
			}),

		reportRegistry: ({ route, ...report }, call) =>
			respond(context, call, { route }, async (from) => {
				await acceptReport(context, from.uid, report);
				return {};
			}),

		checkMetaOwners: ({ route, ownerships }, call) =>
			respond(context, call, { route, count: ownerships.length }, async (from) => ({
				verdicts: await checkOwnerships(context, from, ownerships),
			})),

		describeHolders: ({ route, targets, caller, limit }, call) =>
			respond(context, call, { route, count: targets.length }, async () => {
				const shows = await shownTo(context, caller);
				const most = Math.min(limit || requestLimit, requestLimit);
				return { targets: [...(await localHolders(context, targets, shows, most, call.signal))] };
			}),

		watchImportedServiceDeletions: (request, call) => watchDeletions(context, request, call),
	};
}

/** Responds to a call that is meant for this deployment, and names its servers, in errors too. */
async function respond<T>(
	context: ConstraintContext,
	{ requestHeader, responseHeader }: HandlerContext,
	{ route, count }: { readonly route: Route | undefined; readonly count?: number },
	run: (from: Deployed) => Promise<T>,
): Promise<T> {
	responseHeader.set(protocolHeader, encodeProtocolVersions(protocolVersions));
	const from = senderOf(context, route, count);
	learnServers(context, from, requestHeader);
	try {
		return await run(from);
	} catch (failure) {
		const error = connectErrorOf(failure);
		error?.metadata.set(endpointsHeader, endpointsOf(context));
		throw error ?? failure;
	} finally {
		responseHeader.set(endpointsHeader, endpointsOf(context));
	}
}

function learnServers(
	{ environment }: ConstraintContext,
	{ uid }: Deployed,
	header: Headers,
): void {
	const endpoints = header.get(endpointsHeader);
	if (endpoints !== null) {
		environment.learnServers?.(uid, endpoints);
	}
}

function endpointsOf({ index }: ConstraintContext): string {
	return encodeEndpoints(announcedAddresses(index.endpoints), index.version);
}

/**
 * The deployment that sends a request.
 *
 * @param count - the number of entries in the request.
 * @throws ConnectError Unavailable if the request is meant for another deployment, by uid: the address may
 *   have been reassigned; also if the sender was deleted and is dropped here, if the sender or this deployment was
 *   taken over, or if they have no version of the protocol in common. InvalidArgument if the sender is missing or the request has too many entries.
 */
function senderOf(
	{ environment, dropped }: ConstraintContext,
	route: Route | undefined,
	count = 0,
): Deployed {
	if (route?.from === undefined || route.from.uid === "") {
		throw new ConnectError("route.from.uid is required", Code.InvalidArgument);
	}
	const { uid, name } = environment.self;
	if (uid === "") {
		throw new ConnectError(`${name} is starting: it has not registered yet`, Code.Unavailable);
	}
	if (route.toUid !== uid && !isPlanted("respond to calls that are meant for another deployment")) {
		throw new ConnectError(
			`this is deployment ${name || uid}, not the one with uid ${route.toUid}`,
			Code.Unavailable,
		);
	}
	assertSpoken(route, deployedOf(environment.self));
	dropped.assertNotDropped(route.from.uid);
	for (const each of [route.from.uid, uid]) {
		const successor = environment.successorOf(each);
		if (successor !== undefined && successor.uid !== each) {
			throw refusalOfPredecessor(each, successor.uid);
		}
	}
	if (count > requestLimit) {
		throw new ConnectError(
			`a request can have at most ${requestLimit} entries`,
			Code.InvalidArgument,
		);
	}
	return route.from;
}

/** The route of what this deployment has received from another one. */
function routeFrom({ environment }: ConstraintContext, from: Deployed): Route {
	return create(RouteSchema, { from, toUid: environment.self.uid });
}

/** @throws ConnectError PermissionDenied if the sender is another deployment, which must not speak for a third one. */
function assertSameDeployment({ environment }: ConstraintContext, { uid }: Deployed): void {
	if (uid !== environment.self.uid) {
		throw new ConnectError(
			"only servers of this deployment may pass on deletions to it",
			Code.PermissionDenied,
		);
	}
}

async function authorizeReferences(
	context: ConstraintContext,
	from: Deployed,
	{ targets, caller }: AuthorizeReferencesRequest,
): Promise<Record<string, never>> {
	const decide = decideTargets(await receivedCaller(context, from, caller), targets);
	if (caller?.caller.case === "user") {
		assertServed(context, (await schemaForEstablishments(context)).servedTypes, targets);
	}
	for (const { key } of targets) {
		const stored = key && (await context.backend.lookup(nameOfKey(key)));
		if (key !== undefined && stored !== undefined) {
			decide(key, stored);
		}
	}
	return {};
}

/** Decides on all questions of a request. The decisions are final, except in a dry run. */
async function checkReferences(
	context: ConstraintContext,
	from: Deployed,
	{ questions, dryRun }: CheckReferencesRequest,
	signal: AbortSignal,
): Promise<readonly HolderDecision[]> {
	const received = await Promise.all(
		questions.map(async ({ target, targetUid, deleting, caller }): Promise<Question> => {
			if (target === undefined) {
				throw new ConnectError("question.target is required", Code.InvalidArgument);
			}
			return { target, targetUid, deleting, shows: await shownTo(context, caller) };
		}),
	);
	if (dryRun) {
		return Promise.all(
			received.map(({ target, targetUid, shows }) =>
				currentDecision(context, target, targetUid, { shows, signal }),
			),
		);
	}
	const decisions = await finalDecisions(context, received, signal);
	for (const { target, targetUid, deleting } of received) {
		if (deleting) {
			context.hints.deleting({ deploymentUid: from.uid, target, targetUid });
		}
	}
	return decisions;
}

function decisionMessage({ rules, owned, blockers, hidden }: HolderDecision) {
	const isBlocking = rules.includes(OnDelete.BLOCK);
	return {
		rule: strictest(rules),
		rules: [...rules],
		owned,
		blockers: isBlocking ? [...blockers] : [],
		hiddenBlockers: isBlocking ? hidden : 0,
	};
}

async function* watchDeletions(
	context: ConstraintContext,
	{ route, references }: WatchImportedServiceDeletionsRequest,
	{ signal, requestHeader, responseHeader }: HandlerContext,
) {
	responseHeader.set(protocolHeader, encodeProtocolVersions(protocolVersions));
	const from = senderOf(context, route);
	const { uid } = from;
	learnServers(context, from, requestHeader);
	const { index } = context;
	responseHeader.set(endpointsHeader, endpointsOf(context));
	const feed = deletionFeed(context, uid, signal);
	await index.ready(signal);
	if (references !== undefined) {
		await recordFollower(context, from, references);
	}
	// It may have been unreachable, and deletions that it holds may have waited for that.
	const releases = [...context.deletions.of(uid)];
	context.hints.reported({ route: routeFrom(context, from), releases }, false);
	for await (const event of feed) {
		yield create(WatchImportedServiceDeletionsResponseSchema, {
			event: deletionMessage(context, event),
		});
	}
}

function deletionMessage(
	context: ConstraintContext,
	event: DeletionEvent,
): NonNullable<MessageInitShape<typeof WatchImportedServiceDeletionsResponseSchema>["event"]> {
	switch (event.kind) {
		case "deletion":
			return { case: "deletion", value: { target: event.target, targetUid: event.targetUid } };
		case "end-of-snapshot":
			return { case: "endOfSnapshot", value: { servedTypes: [...context.descriptor.servedTypes] } };
		case "servers":
			return { case: "servers", value: { endpoints: endpointsOf(context) } };
	}
}

/** The error that other deployments receive; `undefined` for one that they must not see. */
function connectErrorOf(failure: unknown): ConnectError | undefined {
	if (failure instanceof ConnectError) {
		return failure;
	}
	if (failure instanceof StorageUnavailable) {
		return new ConnectError(failure.message, Code.Unavailable);
	}
	if (failure instanceof Refused) {
		return new ConnectError(failure.message, failure.code);
	}
	if (failure instanceof Exhausted) {
		return new ConnectError(failure.message, Code.ResourceExhausted);
	}
	return undefined;
}
