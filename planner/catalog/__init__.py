"""The catalog: GPUs, models, releases of vLLM, its rules, published boots, and what was fitted to them.

Plain data with the source of every fact, read when it is first asked for; no database, no network.
"""

from planner.catalog.boots import Boot as Boot
from planner.catalog.boots import boots as boots
from planner.catalog.engine_table import engine_fact_table as engine_fact_table
from planner.catalog.engine_table import engine_facts as engine_facts
from planner.catalog.engine_table import known_versions as known_versions
from planner.catalog.fitted import fit as fit
from planner.catalog.gpu_table import GpuEntry as GpuEntry
from planner.catalog.gpu_table import GpuFact as GpuFact
from planner.catalog.gpu_table import facts_of_gpu as facts_of_gpu
from planner.catalog.gpu_table import find_gpu as find_gpu
from planner.catalog.gpu_table import gpu_entries as gpu_entries
from planner.catalog.gpu_table import gpus as gpus
from planner.catalog.gpu_table import slice_entries as slice_entries
from planner.catalog.model_files import ModelEntry as ModelEntry
from planner.catalog.model_files import find_config as find_config
from planner.catalog.model_files import find_entry as find_entry
from planner.catalog.model_files import find_model as find_model
from planner.catalog.model_files import full_name as full_name
from planner.catalog.model_files import known_names as known_names
from planner.catalog.model_files import model_entries as model_entries
from planner.catalog.model_files import model_names as model_names
from planner.catalog.rule_table import Rule as Rule
from planner.catalog.rule_table import rules as rules
