"""The public names of `headscope.tasks`, each once; `lazy_loader` reads them from here."""

from ._batches import ReadingOptions as ReadingOptions
from ._classification import classification as classification
from ._classification import likeness as likeness
from ._classification import pictures as pictures
from ._loss import masked_word as masked_word
from ._loss import minimal_pairs as minimal_pairs
from ._loss import next_word as next_word
from ._loss import repeats as repeats
from ._loss import translation as translation
from ._named import function_of as function_of
from ._named import judge_of as judge_of
from ._named import named_task as named_task
from ._named import repeated_runs as repeated_runs
from ._named import task_of_rows as task_of_rows
from ._names import NAMES as NAMES
from ._names import check_task as check_task
from ._task import Task as Task
from ._task import parse_task as parse_task
