/** The level of errors in the servers' logs. */
const errorLevel = 50;

/** How often servers logged which error, by its message and cause. */
export function errorsLogged(logs: readonly string[]): Readonly<Record<string, number>> {
	const errors = logs.flatMap((log) => log.split("\n")).flatMap(errorOf);
	return Object.fromEntries(
		[...Map.groupBy(errors, (error) => error)].map(([error, { length }]) => [error, length]),
	);
}

function errorOf(line: string): readonly string[] {
	if (!line.startsWith("{") || !line.endsWith("}")) {
		return [];
	}
	const { level, msg, err }: { level?: number; msg?: string; err?: { message?: string } } =
		JSON.parse(line);
	return level !== undefined && level >= errorLevel
		? [`${msg}: ${err?.message}`.replaceAll(/\d+/g, "…")]
		: [];
}
