import type { Command } from "commander";
import { readConfiguration } from "../configuration/config-file.ts";
import type { Io } from "../io.ts";
import { Session } from "../session.ts";
import { mayBeValue, optionsOf, type PartialLine, readPartialLine } from "./partial-line.ts";
import { fileCandidate } from "./shells.ts";

/** Short, because the shell waits for the candidates. */
const requestTimeout = "2s";

/** More are not useful in a terminal. */
const maxCandidates = 200;

/** The completions of the last word. Without a server, only those that need none. */
export async function candidates(
	program: Command,
	words: readonly string[],
	io: Io,
): Promise<readonly string[]> {
	const line = readPartialLine(program, words);
	using session = new Session(io, { ...line.globalFlags, requestTimeout });
	try {
		const all = await candidatesFor(line, session);
		if (all.includes(fileCandidate)) {
			return [fileCandidate];
		}
		return [...new Set(all)].filter((one) => one.startsWith(line.word)).slice(0, maxCandidates);
	} catch {
		// No server, no rights or an invalid configuration: the command itself will report it.
		return [];
	}
}

async function candidatesFor(line: PartialLine, session: Session): Promise<readonly string[]> {
	const { command, operands, word, optionOfWord } = line;
	if (optionOfWord !== undefined && mayBeValue(word, optionOfWord)) {
		return valuesOf(line, session);
	}
	if (word.startsWith("-")) {
		const options = [...optionsOf(command), command.createOption("--help")];
		return options.filter(({ hidden }) => !hidden).flatMap(({ long }) => long ?? []);
	}
	if (command.commands.length > 0) {
		return operands.length > 0
			? []
			: command.commands.map((one) => one.name()).filter((name) => !name.startsWith("_"));
	}
	const argument =
		command.registeredArguments[Math.min(operands.length, command.registeredArguments.length - 1)];
	if (
		argument === undefined ||
		(operands.length >= command.registeredArguments.length && !argument.variadic)
	) {
		return [];
	}
	if (argument.argChoices !== undefined) {
		return argument.argChoices;
	}
	switch (argument.name()) {
		case "type":
		case "names":
			return targets(line, session);
		case "name":
			return namesFor(line, session);
		case "field":
			return fields(line, session);
		case "file":
			return [fileCandidate];
		default:
			return [];
	}
}

/** What the argument `name` of the command names. */
function namesFor(line: PartialLine, session: Session): Promise<readonly string[]> {
	const { command } = line;
	if (command.parent?.name() === "context") {
		return contextNames(session);
	}
	switch (command.name()) {
		case "controllers":
			return controllerNames(session);
		case "settle":
			return deploymentNames(session);
		default:
			return targets(line, session);
	}
}

async function valuesOf(line: PartialLine, session: Session): Promise<readonly string[]> {
	const { optionOfWord } = line;
	if (optionOfWord?.argChoices !== undefined) {
		return optionOfWord.argChoices;
	}
	switch (optionOfWord?.attributeName()) {
		case "context":
			return contextNames(session);
		case "namespace":
			return namesOf("tenancy.v1.Namespace", session);
		case "partition":
			return namesOf("tenancy.v1.Partition", session);
		case "for":
			return ["condition=", "delete", "create"];
		case "prune":
		case "type":
			return typeNames(line, session);
		case "sortBy":
			return ["name", "age", ...(await fields(line, session))];
		case "filename":
		case "tokenFile":
		case "caFile":
		case "certificateFile":
		case "keyFile":
		case "config":
			return [fileCandidate];
		default:
			return [];
	}
}

async function contextNames(session: Session): Promise<readonly string[]> {
	const { contexts } = await readConfiguration(session.configFile, () => {});
	return Object.keys(contexts);
}

async function controllerNames(session: Session): Promise<readonly string[]> {
	const { ControllerService } = await import("@plinth/proto");
	const { connection, io } = await session.server();
	const { controllers } = await connection
		.client(ControllerService)
		.listControllers({}, { signal: io.signal });
	return controllers.map(({ name }) => name);
}

async function deploymentNames(session: Session): Promise<readonly string[]> {
	const { readDeployments, wordFor } = await import("../api/deployments.ts");
	const { deployments } = await readDeployments(await session.server());
	return deployments.map(wordFor);
}

/** The paths of the fields of the type that the line names. */
async function fields(
	{ operands: [type = ""] }: PartialLine,
	session: Session,
): Promise<readonly string[]> {
	const { fieldsOf, pathOf } = await import("../actions/types.ts");
	const types = await (await session.server()).types();
	return fieldsOf(types.find(type).schema).map(pathOf);
}

async function typeNames({ word }: PartialLine, session: Session): Promise<readonly string[]> {
	const { all } = await (await session.server()).types();
	return word.includes(".") || /^[a-z]/.test(word)
		? all.map(({ key }) => key)
		: [...all.map(({ type: { kind } }) => kind)];
}

/** Types first; after a type, or `TYPE/`, the names of its resources. */
async function targets(line: PartialLine, session: Session): Promise<readonly string[]> {
	const { operands, word } = line;
	const [type] = operands;
	if (type !== undefined && !type.includes("/")) {
		const names = await namesOf(type, session);
		return names.filter((name) => !operands.includes(name));
	}
	const slash = word.indexOf("/");
	if (slash >= 0) {
		const prefix = word.slice(0, slash);
		return (await namesOf(prefix, session)).map((name) => `${prefix}/${name}`);
	}
	return typeNames(line, session);
}

async function namesOf(word: string, session: Session): Promise<readonly string[]> {
	const { listResources } = await import("../api/read-resources.ts");
	const server = await session.server();
	const type = (await server.types()).find(word);
	const resources = await listResources(server, type, { namePrefix: "", everywhere: false });
	return resources.map(({ id }) => id?.name ?? "");
}
