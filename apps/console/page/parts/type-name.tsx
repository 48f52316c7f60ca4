import { Fragment } from "react";

/** The name of a type, as in `catalog.v1.Service`. Where it does not fit, it is broken after a dot. */
export function TypeName({ of: name }: { readonly of: string }) {
	return name.split(".").map((part, at) => (
		// biome-ignore lint/suspicious/noArrayIndexKey: a part is its position
		<Fragment key={at}>
			{at > 0 && (
				<>
					.<wbr />
				</>
			)}
			{part}
		</Fragment>
	));
}
