import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	type AuthorizeReferencesRequest,
	type CheckReferencesRequest,
	type Route,
	type SchemaMixinService,
	WatchImportedServiceDeletionsResponseSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { Deployed } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Exhausted, Refused, StorageUnavailable } from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import { shadowName, strictest } from "../shadow/shadow.ts";
import { recordEstablished } from "../succession/succession.ts";
import { decideTargets } from "./authorize-targets.ts";
import { checkOwnerships } from "./check-ownership.ts";
import { confirmSource } from "./confirm-sources.ts";
import { deletionFeed } from "./deletion-feed.ts";
import { establishSources } from "./establish-sources.ts";
import { finalDecisions, type Question } from "./final-decisions.ts";
import { receivedCaller, shownTo } from "./forwarded-callers.ts";
import { currentDecision, type HolderDecision } from "./holder-decision.ts";

/** The maximum number of questions, targets or hints per request. */
const requestLimit = 1_000;

/** The service by which other deployments reach this one. */
export function createSchemaMixinService(
	context: ConstraintContext,
): ServiceImpl<typeof SchemaMixinService> {
	return {
		establishReferences: ({ route, targets, caller }) =>
			withConnectErrors(async () => {
				const from = senderOf(context, route, targets.length);
				const onBehalfOf = await receivedCaller(context, from, caller);
				return { established: await establishSources(context, from, targets, onBehalfOf) };
			}),

		authorizeReferences: (request) =>
			withConnectErrors(() => authorizeReferences(context, request)),

		confirmBlockades: ({ route, blockades }) =>
			withConnectErrors(async () => {
				const from = senderOf(context, route, blockades.length);
				await Promise.all(blockades.map((blockade) => confirmSource(context, from, blockade)));
				return {};
			}),

		checkReferences: (request, { signal }) =>
			withConnectErrors(async () => ({
				answers: (await checkReferences(context, request, signal)).map(decisionMessage),
			})),

		reportReleases: ({ route, releases }) => {
			const from = senderOf(context, route, releases.length);
			for (const { target } of releases) {
				if (target !== undefined) {
					context.hints.queryHolderSoon(shadowName(target), from.uid);
				}
			}
			return {};
		},

		reportEstablished: ({ route }) =>
			withConnectErrors(async () => {
				await recordEstablished(context, senderOf(context, route).uid);
				return {};
			}),

		checkMetaOwners: ({ route, ownerships }) =>
			withConnectErrors(async () => {
				const from = senderOf(context, route, ownerships.length);
				return { verdicts: await checkOwnerships(context, from, ownerships) };
			}),

		watchImportedServiceDeletions: ({ route }, { signal }) =>
			watchDeletions(context, route, signal),
	};
}

/**
 * The deployment that sends a request.
 *
 * @param count - the number of entries in the request.
 * @throws ConnectError Unavailable if the request is meant for another deployment, by uid: the address may
 *   have been reassigned. InvalidArgument if the sender is missing or the request has too many entries.
 */
function senderOf(
	{ environment }: ConstraintContext,
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
	if (route.toUid !== uid) {
		throw new ConnectError(
			`this is deployment ${name || uid}, not the one with uid ${route.toUid}`,
			Code.Unavailable,
		);
	}
	if (count > requestLimit) {
		throw new ConnectError(
			`a request can have at most ${requestLimit} entries`,
			Code.InvalidArgument,
		);
	}
	return route.from;
}

async function authorizeReferences(
	context: ConstraintContext,
	{ route, targets, caller }: AuthorizeReferencesRequest,
): Promise<Record<string, never>> {
	const from = senderOf(context, route, targets.length);
	const decide = decideTargets(await receivedCaller(context, from, caller), targets);
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
	{ route, questions, dryRun }: CheckReferencesRequest,
	signal: AbortSignal,
): Promise<readonly HolderDecision[]> {
	const from = senderOf(context, route, questions.length);
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
				currentDecision(context, target, targetUid, { shows }),
			),
		);
	}
	const decisions = await finalDecisions(context, received, signal);
	for (const { target, targetUid, deleting } of received) {
		if (deleting) {
			context.hints.deleting(from.uid, target, targetUid);
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
	route: Route | undefined,
	signal: AbortSignal,
) {
	const { uid } = senderOf(context, route);
	const { index } = context;
	await index.ready(signal);
	for await (const event of deletionFeed(index, uid, signal)) {
		yield create(WatchImportedServiceDeletionsResponseSchema, {
			event:
				event.kind === "deletion"
					? { case: "deletion", value: { target: event.target, targetUid: event.targetUid } }
					: { case: "endOfSnapshot", value: {} },
		});
	}
}

/** Maps failures of the storage to the errors that other deployments receive. */
async function withConnectErrors<T>(run: () => Promise<T>): Promise<T> {
	try {
		return await run();
	} catch (failure) {
		if (failure instanceof StorageUnavailable) {
			throw new ConnectError(failure.message, Code.Unavailable);
		}
		if (failure instanceof Refused) {
			throw new ConnectError(failure.message, failure.code);
		}
		if (failure instanceof Exhausted) {
			throw new ConnectError(failure.message, Code.ResourceExhausted);
		}
		throw failure;
	}
}
