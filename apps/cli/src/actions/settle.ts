import { nameOfKey } from "@plinth/documents";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	SettleRequest_Action as Action,
	type ListDeploymentsResponse_Deployment as Deployment,
	type MissingReference,
	SettleResponse_Outcome as Outcome,
	type SettleResponse_Result as Result,
} from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import type { TypeLike } from "@plinth/resource";
import {
	displayDeployment,
	findDeployment,
	readAllMissing,
	settleSome,
} from "../api/deployments.ts";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { countOf, missingTable } from "../output/missing-references.ts";
import { printable } from "../output/printable.ts";
import { ProgressLine } from "../output/progress-line.ts";
import { agrees, assertMayAsk } from "./agree.ts";
import { showCascades } from "./cascades.ts";

/** The flags of `plinth deployments settle`. */
export interface SettleFlags {
	readonly unset?: boolean;
	readonly cascade?: boolean;
	readonly keep?: boolean;
	readonly type?: readonly string[];
	readonly target?: readonly string[];
	readonly kept?: boolean;
	readonly yes?: boolean;
	readonly dryRun?: "server";
}

/** A reference, what is to be done with it, and what the server says of that. */
interface Choice {
	readonly reference: MissingReference;
	readonly action: Action;
	readonly result?: Result | undefined;
}

/** How many references one call settles: few enough to be done before the timeout, even if deployments don't respond. */
const settledPerCall = 50;

/** How many references are shown. */
const shownAtMost = 1_000;

/** Gives up references that have no target in a deployment, or keeps them. */
export async function settle(
	session: ServerSession,
	word: string,
	flags: SettleFlags,
): Promise<ExitCode> {
	const { io } = session;
	const deployment = await findDeployment(session, word);
	const types = flags.type && (await session.types());
	const wanted = flags.type?.flatMap((name) => types?.find(name).type ?? []);
	assertMayAsk(io, flags, "settle these references");
	const chosen = await choose(session, deployment, wanted, flags);
	const open = chosen.filter(({ action }) => action !== Action.UNSPECIFIED);
	if (chosen.length === 0) {
		return exitCodes.ok;
	}
	const checked = await settleAll(session, deployment, open, true);
	const left = chosen.filter(({ action }) => action === Action.UNSPECIFIED);
	showPlan(session, [...checked, ...left]);
	await showCascades(session, cascaded(checked));
	const possible = checked.filter(({ result }) => result?.outcome === Outcome.SETTLED);
	if (
		possible.length === 0 &&
		[...checked, ...left].some(({ result }) => result?.outcome !== Outcome.GONE)
	) {
		throw new Failure(exitCodes.conflict, "none of these references can be settled so");
	}
	if (flags.dryRun || possible.length === 0) {
		return exitCodes.ok;
	}
	if (!(await agrees(io, flags, `Settle ${countOf(possible.length)}? It can't be undone.`))) {
		io.out("nothing was changed\n");
		return exitCodes.ok;
	}
	return report(session, await settleAll(session, deployment, possible, false));
}

/**
 * The references that the flags choose, and what is to be done with each.
 *
 * @param wanted - the types of `--type`.
 */
async function choose(
	session: ServerSession,
	deployment: Deployment,
	wanted: readonly TypeLike[] | undefined,
	flags: SettleFlags,
): Promise<readonly Choice[]> {
	const { io } = session;
	const progress = new ProgressLine(io);
	const { references, hidden } = await readAllMissing(session, deployment, (read, of) =>
		progress.show(`${read} of ${of} references read`),
	);
	progress.clear();
	const where = displayDeployment(deployment);
	if (hidden > 0n) {
		io.err(
			`plinth: ${hidden} references to ${printable(where)} are left out: you may not read their resources\n`,
		);
	}
	const matching = references.filter(
		({ holder, target }) =>
			(wanted?.some(({ group, kind }) => group === holder?.group && kind === holder.kind) ??
				true) &&
			(flags.target?.some((name) =>
				[target?.name, `${target?.namespace}/${target?.name}`].includes(name),
			) ??
				true),
	);
	if (matching.length === 0 && references.length > 0) {
		const filters = "none matches --type and --target";
		throw new Failure(
			exitCodes.notFound,
			`${countOf(references.length)} without a target in ${where}, of which ${filters}`,
		);
	}
	const chosen = matching.filter(({ isKept }) => flags.kept || !isKept);
	if (references.length === 0) {
		io.out(`${noneIn(deployment)}\n`);
	} else if (chosen.length === 0) {
		const kept = `${countOf(matching.length)} without a target in ${printable(where)}`;
		io.out(
			`nothing to settle: ${kept} that operators have decided to keep (--kept includes them)\n`,
		);
	}
	return chosen.map((reference) => ({ reference, action: actionFor(reference, flags) }));
}

function noneIn(deployment: Deployment): string {
	const none = `no reference of this server's deployment lacks a target in ${printable(displayDeployment(deployment))}`;
	return deployment.isSelf
		? `${none}, which is its own. References of other deployments to it are settled there: use --server with a server of each`
		: none;
}

function actionFor({ rule }: MissingReference, { unset, cascade, keep }: SettleFlags): Action {
	if (unset) {
		return Action.UNSET;
	}
	if (cascade) {
		return Action.CASCADE;
	}
	if (keep) {
		return Action.KEEP;
	}
	switch (rule) {
		case OnDelete.UNSET:
			return Action.UNSET;
		case OnDelete.CASCADE:
			return Action.CASCADE;
		default:
			return Action.UNSPECIFIED;
	}
}

/** Settles in small calls: when one fails, what the ones before have settled stays so. */
async function settleAll(
	session: ServerSession,
	deployment: Deployment,
	choices: readonly Choice[],
	dryRun: boolean,
): Promise<readonly Choice[]> {
	const progress = new ProgressLine(session.io);
	const done: Choice[] = [];
	for (const [action, same] of Map.groupBy(choices, (each) => each.action)) {
		for (let at = 0; at < same.length; at += settledPerCall) {
			const some = same.slice(at, at + settledPerCall);
			const references = some.map(({ reference }) => reference);
			try {
				const results = await settleSome(session, deployment, { action, references, dryRun });
				done.push(...some.map((each, i) => ({ ...each, result: results[i] })));
			} catch (error) {
				progress.clear();
				const settled = done.filter(({ result }) => result?.outcome === Outcome.SETTLED);
				if (!dryRun) {
					session.io.err(
						`plinth: ${settled.length} of ${countOf(choices.length)} were settled, and up to ${some.length} more may have been: run the command again\n`,
					);
				}
				throw error;
			}
			progress.show(
				`${done.length} of ${countOf(choices.length)} ${dryRun ? "checked" : "settled"}`,
			);
		}
	}
	progress.clear();
	return done;
}

function showPlan({ io }: ServerSession, choices: readonly Choice[]): void {
	const byReference = new Map(choices.map((each) => [each.reference, each]));
	const shown = choices.slice(0, shownAtMost).map(({ reference }) => reference);
	const table = missingTable(shown, io, {
		heading: "WOULD BE",
		textOf: (reference) => plannedFor(byReference.get(reference)),
	});
	const more = choices.length - shown.length;
	io.out(`${table}${more > 0 ? `and ${countOf(more)} more\n` : ""}`);
	const open = choices.filter(({ action }) => action === Action.UNSPECIFIED).length;
	if (open > 0) {
		io.out(`left: ${countOf(open)} with the rule block: choose --unset, --cascade or --keep\n`);
	}
	for (const choice of choices.filter(({ result }) => result?.outcome === Outcome.REFUSED)) {
		io.out(`refused: ${problemOf(choice)}\n`);
	}
}

/** Why the server refuses to settle a reference. */
function problemOf({ reference, result }: Choice): string {
	return printable(`${nameOfKey(reference.holder)} ${reference.path}: ${result?.problem}`);
}

function plannedFor(choice: Choice | undefined): string {
	const { action = Action.UNSPECIFIED, result } = choice ?? {};
	if (action === Action.UNSPECIFIED) {
		return "left";
	}
	switch (result?.outcome) {
		case Outcome.GONE:
			return "left: changed";
		case Outcome.REFUSED:
			return "refused";
		default:
			return planned[action] ?? "";
	}
}

const planned: Partial<Record<Action, string>> = {
	[Action.UNSET]: "unset",
	[Action.CASCADE]: "deleted",
	[Action.KEEP]: "kept",
};

/** The resources that would be deleted. */
function cascaded(checked: readonly Choice[]) {
	return checked.flatMap(({ action, result, reference }) =>
		action === Action.CASCADE && result?.outcome === Outcome.SETTLED
			? (reference.holder ?? [])
			: [],
	);
}

/** Prints what was done, and on standard error what was not. */
function report({ io }: ServerSession, done: readonly Choice[]): ExitCode {
	const count = (action: Action) =>
		done.filter((each) => each.action === action && each.result?.outcome === Outcome.SETTLED)
			.length;
	const gone = done.filter(({ result }) => result?.outcome === Outcome.GONE).length;
	const refused = done.filter(({ result }) => result?.outcome === Outcome.REFUSED);
	const parts = [
		`${count(Action.UNSET)} unset`,
		`${count(Action.CASCADE)} cascaded`,
		`${count(Action.KEEP)} kept`,
	].filter((part) => !part.startsWith("0 "));
	io.out(`settled: ${parts.join(", ") || "none"}\n`);
	if (gone > 0) {
		io.out(`${countOf(gone)} left: they have a target again, or were changed\n`);
	}
	for (const choice of refused) {
		io.err(`plinth: ${problemOf(choice)}\n`);
	}
	return refused.length > 0 ? exitCodes.failed : exitCodes.ok;
}
