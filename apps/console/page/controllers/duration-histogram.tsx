import { count } from "../model/format.ts";
import { durationBuckets } from "./duration-buckets.ts";

/** How many reconciles took how long, as bars. */
export function DurationHistogram({ counts }: { readonly counts: readonly bigint[] }) {
	const buckets = durationBuckets(counts);
	if (buckets.length === 0) {
		return <p className="muted">None has ended yet.</p>;
	}
	const most = Math.max(...buckets.map((each) => each.count));
	const filled = buckets.filter((each) => each.count > 0);
	return (
		<div
			className="histogram"
			role="img"
			aria-label={`Reconciles by duration: ${filled.map(({ text }) => text).join(", ")}`}
		>
			{buckets.map(({ from, count: reconciles, text }) => (
				<div key={from} title={text}>
					<div className="bar-space">
						{reconciles > 0 && <span className="bar-count">{count(reconciles)}</span>}
						<div className="bar" style={{ height: `${barHeight(reconciles, most)}%` }} />
					</div>
					<span>{from}</span>
				</div>
			))}
		</div>
	);
}

/** In percent, on a logarithmic scale, so that few are told from fewer beside many. The rest is for the number above it. */
function barHeight(reconciles: number, most: number): number {
	return (Math.log1p(reconciles) / Math.log1p(most)) * 82;
}
