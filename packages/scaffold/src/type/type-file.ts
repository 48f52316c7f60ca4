import { capitalized, snakeCase, spoken, withArticle } from "../names/words.ts";

/** The TypeScript file of a type. */
export function typeFile(kind: string, packageName: string): string {
	const generated = `../gen/${packageName.replaceAll(".", "/")}/${snakeCase(kind)}_pb.ts`;
	const words = capitalized(withArticle(spoken(kind)));
	return `import { defineType } from "@plinth/plinth/types";
import { ${kind}Schema } from "${generated}";

/** ${words}. Hooks fill in defaults (\`mutate\`), and refuse what must not be stored (\`validate\`). */
export const ${kind} = defineType(${kind}Schema);
`;
}
