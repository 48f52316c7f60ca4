import { dateTime, shortDuration } from "../model/format.ts";
import { useNow } from "./use-now.ts";

/** How long ago something was, as in `3m12s`. */
export function Age({
	ms,
	suffix = "",
}: {
	readonly ms: number | undefined;
	readonly suffix?: string;
}) {
	const now = useNow();
	return ms === undefined ? null : (
		<time dateTime={new Date(ms).toISOString()} title={dateTime(ms)}>
			{shortDuration(now - ms)}
			{suffix}
		</time>
	);
}
