import { defineType } from "@plinth/resource";
import { AnimalSchema } from "../gen/zoo/v1/animal_pb.ts";

export const Animal = defineType(AnimalSchema);
