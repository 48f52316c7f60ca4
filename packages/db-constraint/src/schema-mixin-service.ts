import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	type Route,
	type SchemaMixinService,
	WatchImportedServiceDeletionsResponseSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { Deployed } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Exhausted, Inconsistent, Refused } from "@plinth/storage";
import { answerNow } from "./answers.ts";
import { checkOwnerships } from "./check-ownership.ts";
import { confirmSource } from "./confirm-sources.ts";
import type { ConstraintContext } from "./constraint-context.ts";
import { deletionFeed } from "./deletion-feed.ts";
import { establishSources } from "./establish-sources.ts";
import { finalAnswers, type Question } from "./final-answers.ts";
import { receivedCaller, shownTo } from "./forwarded-callers.ts";
import { decideTargets } from "./named-targets.ts";
import { nameOfKey } from "./resource-key.ts";
import { shadowName, strictest } from "./shadow.ts";
import { lookup } from "./shadow-records.ts";
import { recordEstablished } from "./succession.ts";

/** How many questions, targets or hints one request may carry. */
const requestLimit = 1_000;

/**
 * What this deployment serves to the others. A request that is meant for another deployment, by uid, is
 * refused: an address may have been given to somebody else since.
 */
export function createSchemaMixinService(
	context: ConstraintContext,
): ServiceImpl<typeof SchemaMixinService> {
	const { environment, hints, index } = context;

	function caller(route: Route | undefined, count = 0): Deployed {
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
			throw new ConnectError(`at most ${requestLimit} entries a request`, Code.InvalidArgument);
		}
		return route.from;
	}

	return {
		establishReferences: ({ route, targets, caller: sent }) =>
			told(async () => {
				const from = caller(route, targets.length);
				const onBehalfOf = await receivedCaller(context, from, sent);
				return { established: await establishSources(context, from, targets, onBehalfOf) };
			}),

		authorizeReferences: ({ route, targets, caller: sent }) =>
			told(async () => {
				const from = caller(route, targets.length);
				const decide = decideTargets(await receivedCaller(context, from, sent), targets);
				for (const { key } of targets) {
					const stored = key && (await lookup(context.backend, nameOfKey(key)));
					if (key !== undefined && stored !== undefined) {
						decide(key, stored);
					}
				}
				return {};
			}),

		confirmBlockades: ({ route, blockades }) =>
			told(async () => {
				const from = caller(route, blockades.length);
				await Promise.all(blockades.map((blockade) => confirmSource(context, from, blockade)));
				return {};
			}),

		checkReferences: ({ route, questions, dryRun }, { signal }) =>
			told(async () => {
				const from = caller(route, questions.length);
				const asked = await Promise.all(
					questions.map(
						async ({ target, targetUid, deleting, caller: sent }): Promise<Question> => {
							if (target === undefined) {
								throw new ConnectError("question.target is required", Code.InvalidArgument);
							}
							return { target, targetUid, deleting, shows: await shownTo(context, sent) };
						},
					),
				);
				const answers = dryRun
					? await Promise.all(
							asked.map(({ target, targetUid, shows }) =>
								answerNow(context, target, targetUid, { shows }),
							),
						)
					: await finalAnswers(context, asked, signal);
				for (const { target, targetUid, deleting } of questions) {
					if (deleting && target !== undefined && !dryRun) {
						hints.deleting(from.uid, target, targetUid);
					}
				}
				return {
					answers: answers.map(({ rules, owned, blockers, hidden }) => ({
						rule: strictest(rules),
						rules: [...rules],
						owned,
						blockers: rules.includes(OnDelete.BLOCK) ? [...blockers] : [],
						hiddenBlockers: rules.includes(OnDelete.BLOCK) ? hidden : 0,
					})),
				};
			}),

		reportReleases: ({ route, releases }) => {
			const from = caller(route, releases.length);
			for (const { target } of releases) {
				if (target !== undefined) {
					hints.askSoon(shadowName(target), from.uid);
				}
			}
			return {};
		},

		reportEstablished: ({ route }) =>
			told(async () => {
				await recordEstablished(context, caller(route).uid);
				return {};
			}),

		checkMetaOwners: ({ route, ownerships }) =>
			told(async () => {
				const from = caller(route, ownerships.length);
				return { verdicts: await checkOwnerships(context, from, ownerships) };
			}),

		async *watchImportedServiceDeletions({ route }, { signal }) {
			const from = caller(route);
			await index.ready(signal);
			for await (const event of deletionFeed(index, from.uid, signal)) {
				yield create(WatchImportedServiceDeletionsResponseSchema, {
					event:
						event.kind === "deletion"
							? { case: "deletion", value: { target: event.target, targetUid: event.targetUid } }
							: { case: "endOfSnapshot", value: {} },
				});
			}
		},
	};
}

/** Failures of the storage as other deployments are told. */
async function told<T>(run: () => Promise<T>): Promise<T> {
	try {
		return await run();
	} catch (failure) {
		if (failure instanceof Inconsistent) {
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
