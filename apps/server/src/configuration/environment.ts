import { didYouMean } from "./did-you-mean.ts";
import type { ResolvedValue, Source } from "./resolved-config.ts";
import type { AnySetting } from "./setting.ts";
import { allSettings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** Variables that are not the server's: of the command line, of tests, and of Kubernetes for a service. */
const foreignVariable =
	/^PLINTH_(?:CONTEXT|SERVER|TOKEN|NAMESPACE|PARTITION|SEEDS|CLI_.*|.*_SERVICE_(?:HOST|PORT.*)|SERVICE_(?:HOST|PORT.*)|PORT(?:_.*)?|.*_PORT(?:_\d+_.*)?)$/;

/**
 * Reads the variables that begin with `PLINTH_`. An empty one counts as absent.
 *
 * @param accepted the settings of the command.
 * @throws UsageError that names the variable which is unknown.
 */
export function readEnvironment(
	environment: Readonly<Record<string, string | undefined>>,
	accepted: readonly AnySetting[] = allSettings,
): Source {
	const byVariable = new Map(accepted.map((setting) => [setting.variable, setting]));
	const source = new Map<AnySetting, ResolvedValue>();
	for (const [variable, text] of Object.entries(environment)) {
		if (!variable.startsWith("PLINTH_") || text === undefined || text === "") {
			continue;
		}
		const setting = byVariable.get(variable);
		if (setting !== undefined) {
			const texts = setting.kind === "list" ? text.split(",") : [text];
			source.set(setting, { name: variable, texts });
		} else if (!foreignVariable.test(variable)) {
			const meant = didYouMean("variable", variable, accepted);
			throw new UsageError(
				`unknown variable ${variable} in the environment: ${meant === undefined ? "see --help for those that exist" : `did you mean ${meant}?`}`,
			);
		}
	}
	return source;
}
