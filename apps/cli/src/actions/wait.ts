import { conditionsOf, idAt, type KnownType, stateName } from "@plinth/documents";
import { suggestion } from "@plinth/documents/suggest";
import type { ID, Resource } from "@plinth/proto";
import { displayName, isMarkedForDeletion } from "@plinth/resource";
import { checkOneRegion } from "../api/regions.ts";
import type { ServerSession } from "../api/server-session.ts";
import { parseDuration } from "../configuration/duration.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import { reportedReasonsOf } from "../output/deletion-reasons.ts";
import { resourceName } from "../output/print-resources.ts";
import type { Session } from "../session.ts";
import { parseNamedTargets } from "./targets.ts";
import { followReported } from "./watch.ts";

/** The flags of `plinth wait`. */
export interface WaitFlags {
	readonly for: string;
	readonly timeout: string;
	/** The region for whose copies is waited. */
	readonly region?: string;
}

/** What to wait for. */
export type Goal =
	| {
			readonly kind: "condition";
			readonly type: string;
			readonly state: ReturnType<typeof stateName>;
	  }
	| { readonly kind: "delete" }
	| { readonly kind: "create" };

/** Waits until the resources that the words name have reached the goal of the flags. */
export async function wait(
	local: Session,
	words: readonly string[],
	flags: WaitFlags,
): Promise<ExitCode> {
	const goal = parseGoal(flags.for);
	checkOneRegion(flags.region);
	const timeoutMs = parseDuration("--timeout", flags.timeout);
	const session = await local.server();
	const targets = parseNamedTargets(words, await session.types());
	const deadline = deadlineIn(session, timeoutMs, flags.timeout);
	try {
		for (const target of targets) {
			for (const name of target.names) {
				await waitFor(session, { type: target.type, name, region: flags.region }, goal, deadline);
			}
		}
	} finally {
		deadline.cancel();
	}
	return exitCodes.ok;
}

/** @throws Failure if the text is not a goal. */
function parseGoal(text: string): Goal {
	if (text === "delete" || text === "create") {
		return { kind: text };
	}
	const [kind, type, state = "True", ...more] = text.split("=");
	const requested = ["True", "False", "Unknown"].find(
		(one) => one.toLowerCase() === state.toLowerCase(),
	);
	if (kind !== "condition" || !type || more.length > 0 || requested === undefined) {
		throw usageFailure(
			`can't wait for ${JSON.stringify(text)}: --for must be condition=TYPE, condition=TYPE=False, delete or create`,
		);
	}
	return {
		kind,
		type,
		state: requested === "True" || requested === "False" ? requested : "Unknown",
	};
}

interface Deadline {
	readonly signal: AbortSignal;
	/** Whether to look at the current state alone. */
	readonly isNow: boolean;
	/** As in the flag. */
	readonly text: string;
	cancel(): void;
}

function deadlineIn({ io }: ServerSession, timeoutMs: number, text: string): Deadline {
	const controller = new AbortController();
	const isNow = timeoutMs === 0;
	const timer = isNow ? undefined : io.clock.setTimer(timeoutMs, () => controller.abort());
	return { signal: controller.signal, isNow, text, cancel: () => timer?.cancel() };
}

/** Waits for the deletion of one resource, for `delete --wait`. */
export async function waitForDeletion(
	session: ServerSession,
	type: KnownType,
	name: string,
	timeout: string,
): Promise<void> {
	const deadline = deadlineIn(session, parseDuration("--timeout", timeout), timeout);
	try {
		await waitFor(session, { type, name }, { kind: "delete" }, deadline);
	} finally {
		deadline.cancel();
	}
}

/** What is waited for. */
interface Awaited {
	readonly type: KnownType;
	readonly name: string;
	/** For a copy, its region. */
	readonly region?: string | undefined;
}

async function waitFor(
	session: ServerSession,
	{ type, name, region }: Awaited,
	goal: Goal,
	deadline: Deadline,
): Promise<ExitCode> {
	const id = { ...idAt(type, name, session.place), ...(region !== undefined && { region }) };
	let latest: Resource | undefined;
	let first: Resource | undefined;
	let isComplete = false;
	try {
		for await (const change of followReported(session, type, {
			everywhere: false,
			...{ namePrefix: name, region },
			until: deadline.signal,
		})) {
			if (change.kind === "complete") {
				first = latest;
				isComplete = true;
			} else if (change.resource.id?.name === name) {
				latest = change.kind === "deleted" ? undefined : change.resource;
			}
			const isKnown = change.kind === "complete" || first !== undefined || latest !== undefined;
			if (isKnown && isReached(goal, latest, first)) {
				session.io.out(`${resourceName({ id })} ${describe(goal)}\n`);
				return exitCodes.ok;
			}
			const isMissing = latest === undefined && goal.kind === "condition";
			if (isMissing && (change.kind === "complete" || change.kind === "deleted")) {
				throw new Failure(exitCodes.notFound, `${displayName(id)} not found`);
			}
			if (change.kind === "complete") {
				goOn(session, id, goal, deadline, lastSeen(goal, latest));
			}
		}
	} catch (error) {
		if (deadline.signal.aborted && !session.io.signal.aborted) {
			const state = `not yet ${describe(goal)} after ${deadline.text}`;
			throw notReached(id, state, lastSeen(goal, latest, isComplete));
		}
		throw error;
	}
	throw new Error("the watch ended unexpectedly");
}

/** Says what is waited for. @throws Failure if only the current state counts. */
function goOn({ io }: ServerSession, id: ID, goal: Goal, { isNow }: Deadline, seen: string): void {
	if (isNow) {
		throw notReached(id, `not ${describe(goal)}`, seen);
	}
	io.err(`waiting for ${resourceName({ id })}: ${seen}\n`);
}

function notReached(id: ID, state: string, seen: string): Failure {
	return new Failure(exitCodes.timeout, `${displayName(id)} is ${state}: ${seen}`);
}

function isReached(goal: Goal, latest: Resource | undefined, first: Resource | undefined): boolean {
	switch (goal.kind) {
		case "delete":
			// A resource with another uid was created after the deletion.
			return latest === undefined || (first !== undefined && latest.id?.uid !== first.id?.uid);
		case "create":
			return latest !== undefined;
		case "condition":
			return (
				latest !== undefined &&
				conditionsOf(latest).some(
					({ condition, isCurrent }) =>
						isCurrent && condition.type === goal.type && stateName(condition.state) === goal.state,
				)
			);
	}
}

function describe(goal: Goal): string {
	switch (goal.kind) {
		case "delete":
			return "deleted";
		case "create":
			return "created";
		case "condition":
			return goal.state === "True" ? goal.type : `${goal.type}=${goal.state}`;
	}
}

function marked(latest: Resource): string {
	const reasons = reportedReasonsOf(latest);
	const waits = reasons.length === 0 ? "" : `, and waits for ${reasons.join("; ")}`;
	return `it is marked for deletion${waits}`;
}

function lastSeen(goal: Goal, latest: Resource | undefined, isKnown = true): string {
	if (latest === undefined) {
		return isKnown ? "it does not exist" : "the server has not responded";
	}
	if (goal.kind !== "condition") {
		return isMarkedForDeletion(latest) ? marked(latest) : "it exists";
	}
	const conditions = conditionsOf(latest);
	const found = conditions.filter(({ condition }) => condition.type === goal.type);
	if (found.length === 0) {
		const known = conditions.map(({ condition }) => condition.type);
		return `no condition ${goal.type} is reported${suggestion(goal.type, known)}`;
	}
	return found
		.map(({ condition, isCurrent }) => {
			const why = [condition.reason, condition.message].filter((part) => part !== "").join(", ");
			const about = isCurrent ? "" : ", of an older generation";
			return `${goal.type} is ${stateName(condition.state)}${why && ` (${why})`}${about}`;
		})
		.join("; ");
}
