import { listResources, missingTenancy, readResource } from "../api/read-resources.ts";
import { exitCodes } from "../exit-codes.ts";
import { type OutputFormat, printResources } from "../output/print-resources.ts";
import type { Session } from "../session.ts";
import { type AddCommand, allNamespacesOption, outputOption } from "./runner.ts";
import { parseTargets, type Target } from "./targets.ts";

interface GetFlags {
	readonly output: OutputFormat;
	readonly allNamespaces?: boolean;
	readonly prefix?: string;
}

/** `plinth get`: prints resources by name, or all resources of a type. */
export const addGet: AddCommand = (program, run) => {
	program
		.command("get <type> [names...]")
		.description("print resources by name, or all resources of a type")
		.addOption(outputOption())
		.addOption(allNamespacesOption())
		.action((type: string, names: readonly string[], flags: GetFlags) =>
			run(async (session) => {
				const targets = parseTargets([type, ...names], await session.types());
				for (const target of targets) {
					await print(session, target, flags, targets.length === 1);
				}
				return exitCodes.ok;
			}),
		);
};

/** `plinth list`: prints the resources of a type, optionally by name prefix. */
export const addList: AddCommand = (program, run) => {
	program
		.command("list <type>")
		.description("print the resources of a type")
		.option("--prefix <prefix>", "only resources whose names begin with this")
		.addOption(outputOption())
		.addOption(allNamespacesOption())
		.action((type: string, flags: GetFlags) =>
			run(async (session) => {
				const known = (await session.types()).find(type);
				await print(session, { type: known, names: [] }, flags, true);
				return exitCodes.ok;
			}),
		);
};

async function print(
	session: Session,
	{ type, names }: Target,
	flags: GetFlags,
	isAlone: boolean,
): Promise<void> {
	const everywhere = flags.allNamespaces ?? false;
	const resources =
		names.length === 0
			? await listResources(session, type, { namePrefix: flags.prefix ?? "", everywhere })
			: await Promise.all(names.map((name) => readResource(session, type, name)));
	if (resources.length === 0 && !everywhere) {
		const missing = await missingTenancy(session, type);
		if (missing !== undefined) {
			session.warn(missing);
		}
	}
	printResources(type, resources, {
		io: session.io,
		types: await session.types(),
		format: flags.output,
		showTenancy: everywhere,
		isSingle: isAlone && names.length === 1,
	});
}
