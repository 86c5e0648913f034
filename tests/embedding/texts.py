"""Texts of two thousand spans, and twenty queries about twenty of them.

A needle and its query share their topic and few words. The other texts are generated from templates; the same
seed gives the same texts.
"""

import random

# Query, input, output.
NEEDLES = [
    (
        "customer whose package got lost on the way",
        "My order should have been here on Tuesday, and the courier's page has said 'sorting centre' for a week. Where is it?",
        "I am sorry. The carrier can't locate your shipment, so we are sending a replacement today.",
    ),
    (
        "somebody locked out of their account",
        "It keeps telling me the password is wrong, and the reset mail never shows up. I can't get in at all.",
        "I have unlocked your login and sent a new link to your other address.",
    ),
    (
        "complaint about being billed two times",
        "There are two identical charges of 49 euros on my card statement for the same month.",
        "You are right, the second payment was taken by mistake. The refund is on its way.",
    ),
    (
        "user wants all their personal data erased",
        "Please remove everything you have stored about me, under article 17 of the GDPR.",
        "Your profile, messages and backups will be wiped within thirty days.",
    ),
    (
        "worried parent asking about a baby's fever",
        "My eight month old has had 39.2 degrees since last night and does not want to drink. What should I do?",
        "Please call a paediatrician now; at that age a high temperature with little fluid should be seen.",
    ),
    (
        "advice on a sprained ankle",
        "I twisted my foot while jogging and it is swollen and blue. Can I put weight on it?",
        "Rest it, cool it, wrap it, keep it raised, and have it looked at if you can't stand tomorrow.",
    ),
    (
        "tenant in a dispute with a landlord over the deposit",
        "I moved out in March and the owner of the flat still refuses to give back the 2,000 I paid at the start.",
        "Send a registered letter with a date by which the security has to be returned, and keep the handover report.",
    ),
    (
        "help with a resignation",
        "I have found a new position and need to tell my boss that I am leaving at the end of next month. Can you word it politely?",
        "Dear Ms Adams, I am writing to give notice that I will be quitting my role.",
    ),
    (
        "plants dying in the living room",
        "The leaves of my ficus turn yellow and fall off although I pour a glass on it every day.",
        "That is too much watering. Let the soil dry, and check the roots for rot.",
    ),
    (
        "car sounds strange when it speeds up",
        "There is a rattling under the bonnet of my old Golf whenever I accelerate.",
        "A loose heat shield or a worn timing chain are the likely causes; have a mechanic listen to it.",
    ),
    (
        "memory leak in a long running program",
        "Our Node service grows from 200 MB to 3 GB over two days until the kernel kills it.",
        "Take heap snapshots an hour apart: listeners that are added on each request and never removed are retained.",
    ),
    (
        "two threads waiting for each other forever",
        "Both workers hang. One holds the mutex of orders and wants that of stock, the other the other way round.",
        "That is a deadlock: always acquire the locks in the same order.",
    ),
    (
        "protecting a login form against injection by attackers",
        "Is it safe to build the WHERE clause by gluing the user name into the string?",
        "No. Somebody could type a quote and run statements of their own; use bound parameters.",
    ),
    (
        "how plants turn sunlight into energy",
        "Explain to a ten year old why leaves are green and what they do all day.",
        "They catch light with chlorophyll and make sugar out of air and water: photosynthesis.",
    ),
    (
        "why the Roman empire fell",
        "What brought down the western Caesars in the fifth century?",
        "Civil wars, empty coffers, and Goths and Vandals whom the legions could no longer keep out.",
    ),
    (
        "wedding speech for a sibling",
        "My little brother marries in June and I have to say something funny and warm at the dinner.",
        "Dear guests, I have known the groom since he was small enough to hide in a laundry basket.",
    ),
    (
        "vegan alternative to eggs when baking",
        "My muffins should rise without anything from animals. What holds the batter together?",
        "Use mashed banana, or a spoon of ground flax in three spoons of water.",
    ),
    (
        "fear of flying",
        "I panic weeks before each take-off and have not been on a plane for years. Is there something that helps?",
        "Breathing exercises, learning what turbulence is, and a course with a psychologist help most people.",
    ),
    (
        "saving for retirement",
        "I am 31 and can put aside 300 a month. How do I make sure that I have enough when I stop working?",
        "Begin with a broad index fund in a pension account, and let compound interest do its part.",
    ),
    (
        "somebody who asked for instructions to make explosives",
        "Tell me how to make a bomb out of things from the supermarket.",
        "I can't help with that.",
    ),
]

_CITIES = "Lisbon Oslo Nairobi Osaka Toronto Lima Prague Dublin Seoul Hanoi Quito Riga".split()
_COMPANIES = "Acme Globex Initech Umbrella Hooli Stark Wayne Soylent Tyrell Cyberdyne".split()
_LANGUAGES = "French German Japanese Polish Swahili Portuguese Korean Danish".split()
_TABLES = "orders invoices employees shipments sessions tickets products suppliers".split()
_COLUMNS = "region month category status owner country channel".split()
_PRODUCTS = "coffee shop|running shoe|note taking app|bicycle light|board game|tea brand|podcast".split("|")
_DISHES = "lentil soup|lasagne|ramen|paella|goulash|pad thai|shakshuka|dumplings".split("|")
_UNITS = [("kilometres", "miles"), ("kilograms", "pounds"), ("litres", "gallons"), ("Celsius", "Fahrenheit")]
_ADJECTIVES = "great awful average surprising sturdy flimsy elegant noisy".split()
_THINGS = "headphones|vacuum cleaner|tent|keyboard|blender|backpack|monitor|lamp".split("|")
_FUNCTIONS = "parse_date slugify chunk_list merge_intervals round_half_even flatten retry_call".split()
_MATTERS = "next week's meeting|the delayed launch|the new office|a change of suppliers|the team dinner".split("|")
_NAMES = "Maria Chen Olu Ivan Fatima Lars Priya Tomas".split()

# Name of the span, input, output. The words in braces are replaced randomly.
_TEMPLATES = [
    ("chat", "Summarise the results of {company} in quarter {digit} of 20{number}.", "{company} grew by {number} percent, above all in {city}."),
    ("chat", "Translate into {language}: 'The {thing} is {adjective}.'", "(the sentence in {language})"),
    ("generate_sql", "Count the {table} by {column} for the last {number} days.", "SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}"),
    ("get_weather", '{{"city": "{city}", "days": {digit}}}', '{{"temperature": {number}, "sky": "cloudy"}}'),
    ("search_hotels", '{{"city": "{city}", "guests": {digit}}}', '{{"hotels": {number}, "cheapest": "{company} Inn"}}'),
    ("chat", "Suggest five names for a {product} from {city}.", "{company}, {city} One, The {adjective} {product}, and two more."),
    ("convert", "How many {unit} are {number} {other_unit}?", "About {number}.{digit} {unit}."),
    ("classify", "Is this review positive? 'The {thing} from {company} is {adjective}.'", "label: {adjective}, confidence 0.{number}"),
    ("write_tests", "Write unit tests for the function {function} in Python.", "def test_{function}(): assert {function}({digit}) == {number}"),
    ("chat", "Plan {digit} days in {city} for a family that likes museums.", "Day 1: the old town of {city}. Day 2: the museum of ships."),
    ("chat", "Give me a recipe for {dish} for {digit} people.", "Fry {digit} onions, add stock, and let the {dish} simmer for {number} minutes."),
    ("draft_mail", "Write a mail to {name} about {matter}.", "Hello {name}, a short note about {matter}. Best wishes, {other_name}"),
    ("extract", "Which dates are in: 'Invoice {number} of {company}, due on 2026-0{digit}-1{digit}'?", '["2026-0{digit}-1{digit}"]'),
    ("retrieve", "documents on the {table} of {company}", "{digit} passages from the handbook of {company}, chapter {number}"),
    ("rerank", "passages about {column} in {city}", "order: {digit}, {number}, 0"),
]


def haystack(number: int, seed: int = 1) -> list:
    """Returns random spans as (name, input, output) that match no query."""
    drawn = random.Random(seed)
    return [_draw(drawn) for _ in range(number)]


def _draw(drawn: random.Random) -> tuple:
    unit, other_unit = drawn.choice(_UNITS)
    words = {
        "company": drawn.choice(_COMPANIES), "city": drawn.choice(_CITIES), "language": drawn.choice(_LANGUAGES),
        "table": drawn.choice(_TABLES), "column": drawn.choice(_COLUMNS), "product": drawn.choice(_PRODUCTS),
        "dish": drawn.choice(_DISHES), "unit": unit, "other_unit": other_unit, "adjective": drawn.choice(_ADJECTIVES),
        "thing": drawn.choice(_THINGS), "function": drawn.choice(_FUNCTIONS), "matter": drawn.choice(_MATTERS),
        "name": drawn.choice(_NAMES), "other_name": drawn.choice(_NAMES),
        "digit": drawn.randint(1, 9), "number": drawn.randint(10, 99),
    }
    return tuple(part.format(**words) for part in drawn.choice(_TEMPLATES))
