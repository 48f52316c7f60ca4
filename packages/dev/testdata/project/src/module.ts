import { defineModule } from "@plinth/server/module";
import { keeper } from "./controllers/keeper.ts";
import { Animal } from "./types/animal.ts";

export default defineModule({ name: "zoo", types: [Animal], controllers: [keeper] });
