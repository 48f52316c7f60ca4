import type { ResolvedValue, Source } from "./resolved-config.ts";
import type { AnySetting } from "./setting.ts";
import { allSettings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** What the variables of others look like: the command line's, tests', and Kubernetes' for a service. */
const ofOthers =
	/^PLINTH_(?:CONTEXT|SERVER|TOKEN|NAMESPACE|PARTITION|SEEDS|CLI_.*|.*_SERVICE_(?:HOST|PORT.*)|SERVICE_(?:HOST|PORT.*)|PORT(?:_.*)?|.*_PORT(?:_\d+_.*)?)$/;

/**
 * Reads the variables that begin with `PLINTH_`. One that is set to nothing counts as absent.
 *
 * @throws UsageError that names the variable which is unknown.
 */
export function readEnvironment(environment: Readonly<Record<string, string | undefined>>): Source {
	const byVariable = new Map(allSettings.map((setting) => [setting.variable, setting]));
	const source = new Map<AnySetting, ResolvedValue>();
	for (const [variable, text] of Object.entries(environment)) {
		if (!variable.startsWith("PLINTH_") || text === undefined || text === "") {
			continue;
		}
		const setting = byVariable.get(variable);
		if (setting !== undefined) {
			const texts = setting.kind === "list" ? text.split(",") : [text];
			source.set(setting, { name: variable, texts });
		} else if (!ofOthers.test(variable)) {
			throw new UsageError(
				`unknown variable ${variable} in the environment: --help lists those that there are`,
			);
		}
	}
	return source;
}
